import type { TrainingSample } from '../../../base/nouns.js';
import type { Objective } from './objective-sums.js';

/**
 * The objective of supervised learning: the cross-entropy of every written token, whatever its advantage. Each token's
 * gradient is -1 / normalizer.
 */
export function demonstrations(samples: readonly TrainingSample[], normalizer: number): Objective {
  return {
    samples,
    needsScores: false,
    begin() {
      let sum = 0;
      return {
        gradient: (index, logprobs) => {
          for (const logprob of logprobs) sum -= logprob;
          const { mask } = samples[index] as TrainingSample;
          return Float32Array.from(mask, (written) => (written === 1 ? -1 / normalizer : 0));
        },
        result: () => {
          const metrics = { clipFraction: 0, clipFractionLower: 0, approxKl: 0, maxRatioDeviation: 0, logprobGap: 0 };
          return { loss: sum / normalizer, metrics };
        },
      };
    },
  };
}
