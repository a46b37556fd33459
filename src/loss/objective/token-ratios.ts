/** What a policy loss makes of each token of a sample, to be looked at: its ratio, and whether that was clipped. */
import type { TrainingSample } from '../../core/sample.js';
import { correctionOf, type LossSpec, lossKind } from '../loss-spec.js';
import { ratioSpans, sharedLogRatio } from '../ratio-spans.js';
import { partOf, rowsOfSample } from './sample-rows.js';

/** The tokens of a sample in an update. */
export interface TokenRatios {
  /** The importance ratio of the loss, its own or the one that it shares; 0 where masked. */
  readonly ratios: Float32Array; // [T]
  /** 1 where the clipped side of the objective, or the bound of the dual clip, was the one that counted. */
  readonly clipped: Uint8Array; // [T]
}

/** @param logprobs [T], of the policy that is updated */
export function tokenRatios(spec: LossSpec, sample: TrainingSample, logprobs: Float32Array): TokenRatios {
  const { ratio, token } = lossKind(spec);
  const { tokens, advantages, behaviourLogprobs, proximalLogprobs } = sample;
  const old = (correctionOf(spec) === undefined ? undefined : proximalLogprobs) ?? behaviourLogprobs;
  const noted = { ratios: new Float32Array(tokens.length), clipped: new Uint8Array(tokens.length) };
  const outcome = { loss: 0, gradient: 0, clipped: false, clippedLower: false };
  for (const { span, mask } of rowsOfSample(sample)) {
    const [now, before] = [partOf(logprobs, span), partOf(old, span)];
    const logRatio = (t: number) => (now[t] as number) - (before[t] as number);
    for (const shares of ratioSpans(ratio, mask)) {
      const shared = ratio === 'token' ? undefined : Math.exp(sharedLogRatio(ratio, shares, mask, logRatio));
      for (let t = shares.start; t < shares.end; t++) {
        if (mask[t] === 0) continue;
        const value = shared ?? Math.exp(logRatio(t));
        const at = span.start + t;
        noted.ratios[at] = value;
        const advantage = advantages[at] as number;
        if (advantage === 0) continue;
        token(value, advantage, now[t] as number, outcome);
        if (outcome.clipped || outcome.clippedLower) noted.clipped[at] = 1;
      }
    }
  }
  return noted;
}
