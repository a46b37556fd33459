/** Settings that several losses share, with the ranges and defaults that recipes have. */
import { z } from 'zod';

/** A number between 0 and 1, both excluded. */
export const fraction = z.number().gt(0).lt(1);

export const aggregations = z.enum([
  'token-mean',
  'seq-mean-token-sum',
  'seq-mean-token-mean',
  'seq-mean-token-sum-norm',
  'chain-mean',
  'episode-mean',
]);

/**
 * How token losses become one number; `norm` is Dr. GRPO's constant divisor, `chain` all rows of a chain, `episode` all
 * rows of an episode (aggregate.ts has the formulas).
 */
export type Aggregation = z.output<typeof aggregations>;

export const aggregate = (byDefault: Aggregation) => ({
  aggregate: aggregations.default(byDefault).describe('How the losses of tokens become one number.'),
});

const correction = z.strictObject({
  cap: z.number().gt(0).default(2).describe('The largest importance that counts in full.'),
  beyond: z
    .enum(['truncate', 'mask'])
    .default('truncate')
    .describe('The treatment of an importance above the cap: it counts as the cap, or its token does not count.'),
  level: z
    .enum(['token', 'sequence'])
    .default('token')
    .describe('The importance of each token, or of the whole response (the product over its tokens).'),
});

/**
 * A constant weight on every token's loss, for samples that another policy wrote than the one the update begins with: a
 * stale version, or a sampler that rounds differently. The importance is ρ = exp(proximal log-prob - behaviour
 * log-prob); the ratios of the loss are then taken to the proximal policy.
 */
export type ImportanceCorrection = Readonly<z.output<typeof correction>>;

export const correctable = {
  importanceCorrection: correction
    .optional()
    .describe(
      'A correction for samples from another policy than the first policy of the update. It costs a forward pass.',
    ),
};

export const clipSettings = {
  clip: fraction.default(0.2).describe('The largest distance of the ratio from 1 before the loss stops it.'),
  clipLow: fraction.optional().describe('The same below 1 only. Default: `clip`.'),
  clipHigh: z.number().gt(0).optional().describe('The same above 1 only. Default: `clip`.'),
  dualClip: z
    .number()
    .gt(1)
    .optional()
    .describe('An upper bound of the effect of the ratio if the advantage is negative. Default: no bound.'),
  ...correctable,
};
