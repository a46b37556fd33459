import { standard } from '../../../src/runs/composition/standard.js';
import { type Region, table } from '../pages.js';

/** Every policy loss with its formula, from its declaration. */
export const losses: Region = {
  name: 'losses',
  render: () =>
    table(
      ['type', 'loss of a token', 'from', 'when to use'],
      standard.losses.map(({ type, formula, source, use }) => [`\`${type}\``, formula, source, use]),
    ),
};
