/** The schemas of optimisers in recipes, made of the list of optimisers. */
import { z } from 'zod';
import type { OptimizerSettings } from '../../contract/optimizer-settings.js';
import { optimizers } from './index.js';

type AnyOptimizerSchema = ReturnType<(typeof optimizers)[number]['schema']>;

/** The settings of a policy's optimiser, told apart by `type`. */
export const optimizerSchema = z.discriminatedUnion(
  'type',
  optimizers.map(({ schema, rates }) => schema(rates.policy)) as [AnyOptimizerSchema],
) satisfies z.ZodType<OptimizerSettings>;

/** The settings of a critic's optimiser: the optimisers that have a learning rate for critics. */
export const criticOptimizerSchema = z.discriminatedUnion(
  'type',
  optimizers.flatMap(({ schema, rates }) => ('critic' in rates ? [schema(rates.critic as number)] : [])) as [
    AnyOptimizerSchema,
  ],
) satisfies z.ZodType<OptimizerSettings>;
