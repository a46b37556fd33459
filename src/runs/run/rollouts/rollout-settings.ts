import type { Assignment } from '../../../method/recipe.js';
import { evaluationSampling, type Recipe } from '../../../method/recipe.js';
import type { AgentSettings, RolloutSettings } from '../../../teams/rollout.js';

/** The settings of a recipe's rollouts. */
export function rolloutSettings(recipe: Recipe, { speakerOf }: Assignment): RolloutSettings {
  const { maxTurns, partWeights, rewardRetries, concurrency, maxOutcomeBytes, ...training } = recipe.training;
  const agents = agentSettings(recipe, speakerOf);
  const limits = { maxTurns, timeoutMs: training.episodeTimeoutMs, concurrency, maxOutcomeBytes };
  return { agents, seed: recipe.seed, partWeights, rewardRetries, ...limits };
}

function agentSettings(recipe: Recipe, speakerOf: Assignment['speakerOf']): Record<string, AgentSettings> {
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
