import type { TrainingSample } from '../../base/nouns.js';
import type { ForwardBackwardResult } from '../contract/handles.js';
import { objectiveOf } from '../loss/objective/objective.js';
import type { ForwardBackwardOptions } from '../loss/objective/objective-options.js';
import type { PolicyModel } from '../model/decoder/policy-model.js';

/** Adds the gradient of an objective to the gradient of a model in this process. */
export async function forwardBackward(
  model: Pick<PolicyModel, 'score' | 'accumulate'>,
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
  const { loss, metrics, ratios } = sums.result();
  return {
    loss,
    gradientNorm: scores.gradientNorm,
    metrics: { ...metrics, entropy: scores.entropySum / Math.max(1, scores.predicted) },
    tokens: objective.samples.reduce((sum, { tokens }) => sum + tokens.length, 0),
    ...(ratios && { ratios }),
  };
}
