/** The ratio of each token of a sample in a policy loss, and whether it was clipped, for people to look at. */
import type { TrainingSample } from '../../../base/nouns.js';
import type { TokenLoss } from '../define-loss.js';
import { type AnyLoss, correctionOf, lossKind } from '../loss-spec.js';
import { ratioSpans, sharedLogRatio } from '../ratio-spans.js';
import type { TokenRatios } from './objective-sums.js';
import { partOf, rowsOfSample } from './sample-rows.js';

/**
 * The ratios of a sample's tokens.
 * @param logprobs [T], of the policy that is updated
 * @param token The loss of a token, with the constants of the batch
 */
export function tokenRatios(
  loss: AnyLoss,
  sample: TrainingSample,
  logprobs: Float32Array,
  token: TokenLoss,
): TokenRatios {
  const { ratio } = lossKind(loss);
  const { tokens, advantages, behaviourLogprobs, proximalLogprobs } = sample;
  const old = (correctionOf(loss) === undefined ? undefined : proximalLogprobs) ?? behaviourLogprobs;
  const noted = { ratios: new Float32Array(tokens.length), clipped: new Uint8Array(tokens.length) };
  for (const { span, mask } of rowsOfSample(sample)) {
    const [now, before] = [partOf(logprobs, span), partOf(old, span)];
    const logRatio = (t: number) => (now[t] as number) - (before[t] as number);
    for (const shares of ratioSpans(ratio, mask)) {
      const shared = ratio === 'token' ? undefined : sharedLogRatio(ratio, shares, mask, logRatio);
      for (let t = shares.start; t < shares.end; t++) {
        if (mask[t] === 0) continue;
        const log = shared ?? logRatio(t);
        const value = Math.exp(log);
        const at = span.start + t;
        noted.ratios[at] = value;
        const advantage = advantages[at] as number;
        if (advantage === 0) continue;
        const outcome = { loss: 0, gradient: 0, clipped: false, clippedLower: false };
        token({ ratio: value, logRatio: log, advantage, logprob: now[t] as number }, outcome);
        if (outcome.clipped || outcome.clippedLower) noted.clipped[at] = 1;
      }
    }
  }
  return noted;
}
