/** The unions of a recipe, told apart by `type`: estimators, losses, models. */
import { z } from 'zod';

const fraction = z.number().gt(0).lt(1);
const count = z.int().min(1);

/** What every estimator can be told (DESIGN: one partition, one table). */
const estimatorOptions = {
  /** Added to the standard deviation. */
  epsilon: z.number().min(0).default(1e-6),
  /** A group whose spread is below this gets advantage 0. */
  minimumSpread: z.number().min(0).default(1e-6),
  /** What a group of one gets. */
  singleton: z.enum(['zero', 'raw', 'batch']).default('zero'),
  /** How an episode of many turns becomes one score. */
  episodeScore: z.enum(['mean', 'outcome+penalties', 'outcome', 'first']).default('mean'),
};

export const estimatorSchema = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('grpo'), ...estimatorOptions }),
  z.strictObject({ type: z.literal('dr-grpo'), ...estimatorOptions }),
  z.strictObject({
    type: z.literal('drmas'),
    spread: z.enum(['agent', 'none']).default('agent'),
    ...estimatorOptions,
  }),
  z.strictObject({ type: z.literal('drmas-mean'), ...estimatorOptions }),
  z.strictObject({ type: z.literal('drmas-std'), ...estimatorOptions }),
  z.strictObject({ type: z.literal('grpo-turn'), ...estimatorOptions }),
  z.strictObject({
    type: z.literal('partition'),
    score: z.enum(['episode', 'turn']),
    mean: z.enum(['agent', 'task']),
    spread: z.enum(['agent', 'task', 'none']),
    unit: z.enum(['episode', 'turn']).default('episode'),
    ...estimatorOptions,
  }),
]);

const aggregate = z
  .enum(['token-mean', 'seq-mean-token-sum', 'seq-mean-token-mean', 'seq-mean-token-sum-norm'])
  .default('token-mean');

export const lossSchema = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('ppo-clip'),
    clip: fraction.default(0.2),
    clipLow: fraction.optional(),
    clipHigh: z.number().gt(0).optional(),
    dualClip: z.number().gt(1).optional(),
    aggregate,
  }),
  z.strictObject({
    type: z.literal('cispo'),
    clipLow: z.number().gt(0).max(1).default(1),
    clipHigh: z.number().gt(0).default(0.2),
    aggregate,
  }),
  z.strictObject({
    type: z.literal('gspo'),
    clipLow: fraction.default(3e-4),
    clipHigh: z.number().gt(0).default(4e-4),
  }),
]);

const tokenizerSchema = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('symbols'),
    symbols: z.array(z.string().min(1)).min(1).readonly(),
    stop: z.string(),
    endOfUser: z.string(),
    endOfAssistant: z.string(),
  }),
  z.strictObject({ type: z.literal('bytes') }),
]);

export const modelSchema = z.discriminatedUnion('type', [
  z
    .strictObject({
      type: z.literal('tiny-decoder'),
      width: count,
      layers: count,
      heads: count,
      kvHeads: count,
      feedForward: count,
      context: z.int().min(2),
      ropeBase: z.number().gt(0),
      tokenizer: tokenizerSchema,
    })
    .superRefine((model, context) => {
      const fail = (path: string, message: string) => context.addIssue({ code: 'custom', path: [path], message });
      if (model.width % (2 * model.heads) !== 0) {
        fail('width', `must be a multiple of 2 x heads (${2 * model.heads}), got ${model.width}`);
      }
      if (model.heads % model.kvHeads !== 0)
        fail('kvHeads', `must divide heads (${model.heads}), got ${model.kvHeads}`);
    }),
  z.strictObject({ type: z.literal('checkpoint'), path: z.string().min(1) }),
]);
