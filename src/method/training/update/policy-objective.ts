/** The objective of a policy's updates: the options and the log-probs that its loss needs. */
import type { TrainingSample } from '../../../base/nouns.js';
import type { ForwardBackwardOptions } from '../../../engine/loss.js';
import { correctionOf, normalizerOf } from '../../../engine/loss.js';
import type { Learner } from '../run/learner.js';

/** The options for one agent's part of a mini-batch. */
export function objectiveOptions(
  { loss, settings: { entropyCoefficient }, agents }: Learner,
  miniBatch: readonly TrainingSample[],
  agent: string,
): ForwardBackwardOptions {
  const { maxTokens } = (agents[agent] as Learner['agents'][string]).sampling;
  return {
    loss,
    normalizer: normalizerOf(miniBatch, loss, maxTokens),
    ...(entropyCoefficient === 0 ? {} : { entropyCoefficient }),
  };
}

/** The samples with their log-probs under the policy before its update, if the loss needs them. */
export async function withProximal(
  { handle, loss }: Pick<Learner, 'handle' | 'loss'>,
  samples: readonly TrainingSample[],
): Promise<readonly TrainingSample[]> {
  if (correctionOf(loss) === undefined) return samples;
  const rows = await handle.logprobs(samples);
  return samples.map((sample, i) => ({ ...sample, proximalLogprobs: rows[i] as Float32Array }));
}
