/** The kind of models that are tables of choices. */
import { z } from 'zod';
import type { ChoiceTableInput, ChoiceTableSpec } from '../model-spec.js';
import { choicesTokenizer } from '../tokenizers/choice-names.js';
import type { ModelKind } from './model-kind.js';

const differentNames = z
  .array(z.string().min(1))
  .readonly()
  .refine((names) => new Set(names).size === names.length, 'expected different names');

const schema = z
  .strictObject({
    type: z.literal('choice-table'),
    choices: differentNames
      .refine((names) => names.length >= 2, 'expected at least two choices')
      .describe('The names to choose from.'),
    features: differentNames
      .refine((names) => names.length >= 1, 'expected at least one feature, or no `features` at all')
      .optional()
      .describe('The questions. Each has its own logits. By default the table has one row for every question.'),
    length: z
      .int()
      .min(1)
      .optional()
      .describe(
        'The choices of a response, 1 by default. In longer responses each choice depends on the previous one.',
      ),
  })
  .superRefine(({ choices, features = [] }, context) => {
    const both = features.find((feature) => choices.includes(feature));
    if (both !== undefined)
      context.addIssue({ code: 'custom', path: ['features'], message: `'${both}' is the name of a choice` });
  });

export const choiceTableKind: ModelKind<ChoiceTableSpec, ChoiceTableInput, typeof schema, 'table'> = {
  noun: 'a table of choices',
  schema,
  complete: ({ type, choices, features = [''], length = 1 }) => ({ type, choices, features, length }),
  backend: 'table',
  text: ({ features, choices }) => `a table of ${features.length} x ${choices.length} choices`,
  facts: (spec) => ({ tokenizer: choicesTokenizer(spec), context: contextOf(spec), parameters: tableSize(spec) }),
};

/** The number of logits in a table. */
export function tableSize({ choices, features, length }: Omit<ChoiceTableSpec, 'type'>): number {
  return (features.length + (length > 1 ? choices.length : 0)) * choices.length;
}

/** The longest prompt, one feature, and response together. */
export const contextOf = ({ length }: Omit<ChoiceTableSpec, 'type'>): number => 1 + length;
