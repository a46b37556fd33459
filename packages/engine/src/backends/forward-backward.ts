import type { ForwardBackwardResult } from '../contract/handles.js';
import type { LossMetrics } from '../loss/loss-metrics.js';
import { objectiveOf } from '../loss/objective/objective.js';
import type { ForwardBackwardOptions } from '../loss/objective/objective-sums.js';
import type { SequenceScores } from '../model/decoder/decoder.js';
import type { PolicyModel } from '../model/decoder/policy-model.js';
import type { TrainingSample } from '../nouns.js';

/** Adds the gradient of an objective to the gradient of a model in this process. */
export async function forwardBackward(
  model: Pick<PolicyModel, 'accumulate'> & {
    score(samples: readonly TrainingSample[]): Promise<Pick<SequenceScores, 'logprobs'>>;
  },
  samples: readonly TrainingSample[],
  options: ForwardBackwardOptions,
): Promise<ForwardBackwardResult> {
  const objective = objectiveOf(samples, options);
  const scored = objective.needsScores ? (await model.score(objective.samples)).logprobs : [];
  const sums = objective.begin(() => scored);
  const { entropyGradient } = sums;
  const scores = await model.accumulate(
    objective.samples,
    (indices, logprobs) => indices.map((index, i) => sums.gradient(index, logprobs[i] as Float32Array)),
    entropyGradient &&
      ((indices, entropies) => indices.map((index, i) => entropyGradient(index, entropies[i] as Float32Array))),
  );
  const { loss, metrics, ratios } = sums.result(scores.entropies);
  return {
    loss,
    gradientNorm: scores.gradientNorm,
    metrics,
    tokens: objective.samples.reduce((sum, { tokens }) => sum + tokens.length, 0),
    ...(ratios && { ratios }),
  };
}

/** A loss and its derivative with respect to the log-probs of some samples. */
export interface LossGradient {
  readonly loss: number;
  readonly metrics: LossMetrics;
  /** The samples that the loss needs. Identical samples are merged; samples without influence are left out. */
  readonly samples: readonly TrainingSample[];
  /** d loss / d log-probs of `samples`, 0 where masked. */
  readonly gradients: readonly Float32Array[]; // [samples][T]
}

/**
 * The loss of `forwardBackward` and its gradient, for a backend that computes log-probs itself. It serves every loss
 * and the KL penalty. It does not serve an entropy bonus, which needs the whole distribution (`distribution: 'whole'`).
 * @param logprobs Gives the log-probs [samples][T] of these samples under the current policy, 0 where masked
 * @throws ArgumentError when shapes differ or the loss is wrong
 *
 * @example
 * ```ts
 * import { type ForwardBackwardOptions, lossGradient, type TrainingSample } from 'drmas/backends';
 *
 * const uniform = async (samples: readonly TrainingSample[]) =>
 *   samples.map(({ tokens }) => new Float32Array(tokens.length).fill(-Math.log(256)));
 * const backward = (samples: readonly TrainingSample[], options: ForwardBackwardOptions) =>
 *   lossGradient(samples, options, uniform);
 * ```
 */
export async function lossGradient(
  samples: readonly TrainingSample[],
  options: ForwardBackwardOptions,
  logprobs: (samples: readonly TrainingSample[]) => Promise<readonly Float32Array[]>,
): Promise<LossGradient> {
  const objective = objectiveOf(samples, options);
  const scored = await logprobs(objective.samples);
  const sums = objective.begin(() => scored);
  const gradients = scored.map((row, index) => sums.gradient(index, row));
  const { loss, metrics } = sums.result();
  return { loss, metrics, samples: objective.samples, gradients };
}
