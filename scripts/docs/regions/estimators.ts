import { estimators as declared } from '../../../src/advantage/estimators/index.js';
import { type Region, table } from '../pages.js';

/** Every advantage estimator with its formula, from its declaration. */
export const estimators: Region = {
  name: 'estimators',
  render: () =>
    table(
      ['type', 'advantage', 'from', 'when to use'],
      declared.map(({ type, formula, source, use }) => [`\`${type}\``, formula, source, use]),
    ),
};
