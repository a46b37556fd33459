/** The objective of a policy's updates, from the recipe: the options and the log-probs that its loss needs. */

import type { ModelHandle } from '../../contract/handles.js';
import type { TrainingSample } from '../../core/sample.js';
import { correctionOf } from '../../loss/loss-spec.js';
import { normalizerOf } from '../../loss/objective/merged-samples.js';
import type { ForwardBackwardOptions } from '../../loss/objective/objective-options.js';
import { lossOf } from '../../recipe/policy-losses.js';
import type { Recipe } from '../../recipe/recipe.js';

/** The options for one agent's part of a mini-batch. */
export function objectiveOptions(
  recipe: Recipe,
  policy: string,
  miniBatch: readonly TrainingSample[],
  agent: string,
): ForwardBackwardOptions {
  const loss = lossOf(recipe, policy);
  const { entropyCoefficient = 0 } = recipe.policies[policy] ?? {};
  const { maxTokens } = (recipe.agents[agent] as Recipe['agents'][string]).sampling;
  return {
    loss,
    normalizer: normalizerOf(miniBatch, loss, maxTokens),
    ...(entropyCoefficient === 0 ? {} : { entropyCoefficient }),
  };
}

/** The samples with the log-probs that the loss wants of the policy as it is before the update. */
export async function withProximal(
  recipe: Recipe,
  policy: string,
  handle: ModelHandle,
  samples: readonly TrainingSample[],
): Promise<readonly TrainingSample[]> {
  if (correctionOf(lossOf(recipe, policy)) === undefined) return samples;
  const rows = await handle.logprobs(samples);
  return samples.map((sample, i) => ({ ...sample, proximalLogprobs: rows[i] as Float32Array }));
}
