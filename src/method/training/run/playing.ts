import type { Sampling } from '@drmas/engine/contract';
import type { Host } from '@drmas/engine/host';
import type { TaskSet } from '@drmas/engine/nouns';
import type { AgentSettings, RolloutExecutor, RolloutSettings } from '../../../teams/rollout.js';
import type { Assignment } from '../../recipe/assignment.js';
import { evaluationSampling, type Recipe } from '../../recipe/recipe.js';
import type { RunSettings } from './run-settings.js';

export function rolloutSettings(recipe: Recipe, { speakerOf }: Assignment): RolloutSettings {
  const { maxTurns, partWeights, rewardRetries, concurrency, maxOutcomeBytes, ...training } = recipe.training;
  const agents = Object.fromEntries(
    Object.entries(recipe.agents).map(([agent, settings]) => {
      const sampling = evaluationSampling(recipe, agent);
      const frozen = typeof recipe.assign[agent] !== 'string';
      return [agent, agentSettings(settings, sampling, speakerOf[agent] as string, frozen)];
    }),
  );
  const limits = { maxTurns, timeoutMs: training.episodeTimeoutMs, concurrency, maxOutcomeBytes };
  return { agents, seed: recipe.seed, partWeights, rewardRetries, ...limits };
}

function agentSettings(
  { system, sampling, promptLimit, invalidPenalty, callCost, tokenCost }: Recipe['agents'][string],
  evaluationSampling: Sampling,
  policy: string,
  frozen: boolean,
): AgentSettings {
  return {
    policy,
    ...(system === undefined ? {} : { system }),
    sampling,
    ...(promptLimit === undefined ? {} : { promptLimit }),
    evaluationSampling,
    invalidPenalty,
    callCost,
    tokenCost,
    frozen,
    judges: frozen,
  };
}

export interface Tasks {
  readonly train: TaskSet;
  readonly test: TaskSet;
}

export interface Playing extends Pick<RunSettings, 'team' | 'seed' | 'training'> {
  readonly tasks: Tasks;
  readonly executor: RolloutExecutor;
  readonly host: Host;
}
