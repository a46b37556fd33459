import { z } from 'zod';
import { defineLoss } from '../define-loss.js';
import { correctable, fraction } from '../loss-settings.js';
import { clippedSurrogate, requireBounds } from './clipped-surrogate.js';

/**
 * GSPO (Zheng et al. 2025, eqs. 5-7): the clipped surrogate with the ratio of the sequence, the geometric mean of the
 * ratios of its tokens. It is always the mean over sequences of the mean over tokens.
 */
export const gspo = defineLoss({
  type: 'gspo',
  schema: {
    clipLow: fraction
      .default(3e-4)
      .describe("The largest distance of a response's ratio below 1 before the loss stops it."),
    clipHigh: z
      .number()
      .gt(0)
      .default(4e-4)
      .describe("The largest distance of a response's ratio above 1 before the loss stops it."),
    ...correctable,
  },
  source: 'GSPO, Zheng et al. 2025, eqs. 5 to 7',
  formula: 'max(-rs A, -clip(rs) A)',
  use: 'one ratio a response, with a clip of a few 1e-4',
  ratio: 'sequence',
  gradientOf: 'ratio',
  aggregate: 'seq-mean-token-mean',
  token({ clipLow, clipHigh }) {
    requireBounds({ clipLow, clipHigh });
    return clippedSurrogate(1 - clipLow, 1 + clipHigh, Number.POSITIVE_INFINITY);
  },
});
