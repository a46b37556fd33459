import type { Assignment } from '../recipe/assignment.js';
import { evaluationSampling, type Recipe } from '../recipe/recipe.js';
import type { RolloutContext } from '../rollout/rollout-context.js';

/** How every agent of a recipe plays. */
export function agentSettings(recipe: Recipe, { speakerOf }: Assignment): RolloutContext['agents'] {
  return Object.fromEntries(
    Object.entries(recipe.agents).map(([agent, { system, sampling, invalidPenalty, callCost, tokenCost }]) => [
      agent,
      {
        policy: speakerOf[agent] as string,
        ...(system === undefined ? {} : { system }),
        sampling,
        evaluationSampling: evaluationSampling(recipe, agent),
        invalidPenalty,
        callCost,
        tokenCost,
        frozen: typeof recipe.assign[agent] !== 'string',
        judges: typeof recipe.assign[agent] !== 'string',
      },
    ]),
  );
}
