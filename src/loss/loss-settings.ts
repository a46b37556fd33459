/** Settings that several losses share, with the ranges and defaults that recipes have. */
import { z } from 'zod';

/** A number between 0 and 1, both excluded. */
export const fraction = z.number().gt(0).lt(1);

const aggregations = z.enum([
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

/** The setting `aggregate`, with this default. */
export const aggregate = (byDefault: Aggregation) => ({
  aggregate: aggregations.default(byDefault).describe('How the losses of tokens become one number.'),
});

const correction = z.strictObject({
  cap: z.number().gt(0).default(2).describe('The largest importance that counts in full.'),
  beyond: z
    .enum(['truncate', 'mask'])
    .default('truncate')
    .describe('What becomes of an importance above the cap: it counts as the cap, or its token does not count.'),
  level: z
    .enum(['token', 'sequence'])
    .default('token')
    .describe('Whose importance is taken: that of each token, or of the whole response (the product of its tokens).'),
});

/**
 * A constant weight on every token's loss, for samples that another policy wrote than the one the update begins with: a
 * stale version, or a sampler that rounds differently. The importance is ρ = exp(proximal log-prob - behaviour
 * log-prob); the ratios of the loss are then taken to the proximal policy.
 */
export type ImportanceCorrection = Readonly<z.output<typeof correction>>;

/** The setting of losses whose importance can be corrected. */
export const correctable = {
  importanceCorrection: correction
    .optional()
    .describe(
      'A correction for samples of another policy than the one the update begins with; it costs a forward pass an update.',
    ),
};

/** The settings of a clipped surrogate. */
export const clipSettings = {
  clip: fraction.default(0.2).describe('How far the ratio may leave 1 before the loss stops it.'),
  clipLow: fraction.optional().describe('The same below 1 only; `clip` where it is not given.'),
  clipHigh: z.number().gt(0).optional().describe('The same above 1 only; `clip` where it is not given.'),
  dualClip: z
    .number()
    .gt(1)
    .optional()
    .describe('An upper bound of the effect of the ratio where the advantage is negative; none where it is not given.'),
  ...correctable,
};
