/**
 * The loss of own-loss.ts: REINFORCE with the importance ratio, capped. A loss stands in a module of its own, because
 * the engine's thread imports it too.
 */
import { defineLoss } from 'drmas/losses';
import { z } from 'zod';

export default defineLoss({
  type: 'capped',
  schema: { cap: z.number().gt(0).default(2).describe('The largest ratio that counts in full.') },
  source: 'an example',
  formula: '-sg(min(r, `cap`)) A log p',
  use: 'several updates of one step, with a bound on what a token can weigh',
  ratio: 'token', // every token has its own ratio
  gradientOf: 'logprob', // the weight is a constant of the gradient
  aggregate: 'token-mean',
  token:
    ({ cap }) =>
    ({ ratio, advantage, logprob }, out) => {
      const weight = Math.min(ratio, cap);
      out.clipped = ratio > cap;
      out.loss = -weight * advantage * logprob;
      out.gradient = -weight * advantage;
    },
});
