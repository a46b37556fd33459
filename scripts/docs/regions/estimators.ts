import { settingsSchema } from '../../../src/method/advantage/named-choices.js';
import { signals } from '../../../src/method/training/signals/index.js';
import { standard } from '../../../src/runs/composition/standard.js';
import { defaultText, inputNode } from '../json-schema.js';
import { type Region, table } from '../pages.js';

/** The field of a turn that has the numbers of a signal. */
const fieldOf = (signal: string) => signals.find(({ name }) => name === signal)?.field ?? signal;

/**
 * Every advantage estimator with its formula and the defaults of the choices that it alone has, from its declaration.
 */
export const estimators: Region = {
  name: 'estimators',
  render: () =>
    table(
      ['type', 'advantage', 'defaults', 'from', 'when to use'],
      standard.estimators.map(({ type, schema, formula, source, use, traits }) => [
        `\`${type}\``,
        formula,
        Object.entries(inputNode(schema).properties ?? {})
          .filter(([name]) => name !== 'type' && !(name in settingsSchema.shape))
          .map(([name, node]) => `\`${name}\` ${defaultText(node)}`.trim())
          .join(', '),
        source,
        traits.needs === undefined ? use : `${use}. Needs \`${fieldOf(traits.needs)}\``,
      ]),
    ),
};
