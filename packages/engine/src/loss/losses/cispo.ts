import { z } from 'zod';
import { defineLoss } from '../define-loss.js';
import { aggregate, correctable } from '../loss-settings.js';
import { requireBounds } from './clipped-surrogate.js';

/**
 * CISPO (MiniMax-M1, 2025, eq. 4): loss = -w A log p with w = the ratio clamped to [1 - clipLow, 1 + clipHigh]. The
 * weight w is a constant of the gradient, so that a clipped token keeps one.
 */
export const cispo = defineLoss({
  type: 'cispo',
  schema: {
    clipLow: z.number().gt(0).max(1).default(1).describe('The largest distance of the weight below 1.'),
    clipHigh: z.number().gt(0).default(0.2).describe('The largest distance of the weight above 1.'),
    ...aggregate('token-mean'),
    ...correctable,
  },
  source: 'CISPO, MiniMax-M1, 2025, eq. 4',
  formula: '-sg(clip(r)) A log p',
  use: 'clipped tokens should keep a gradient',
  ratio: 'token',
  gradientOf: 'logprob',
  token({ clipLow, clipHigh }) {
    requireBounds({ clipLow, clipHigh });
    const { low, high } = weightBounds({ clipLow, clipHigh });
    return ({ ratio, advantage, logprob }, out) => {
      const weight = Math.min(Math.max(ratio, low), high);
      out.clipped = weight !== ratio;
      out.loss = -weight * advantage * logprob;
      out.gradient = -weight * advantage;
    };
  },
  protocolLoss: (settings) => ({ name: 'cispo', ...weightBounds(settings) }),
});

const weightBounds = ({ clipLow, clipHigh }: { readonly clipLow: number; readonly clipHigh: number }) => ({
  low: 1 - clipLow,
  high: 1 + clipHigh,
});
