/** The values of a recipe that a run reads, computed once. Each part of the loop takes only the values it needs. */
import type { Price } from '@drmas/engine/host';
import type { TaskSource } from '@drmas/engine/nouns';
import type { Team } from '../../../teams/index.js';
import type { OpenEstimator } from '../../advantage/define-estimator.js';
import { lossSettings } from '../../recipe/policy-losses.js';
import { pricesOf, type Recipe, systemPromptOf } from '../../recipe/recipe.js';
import { type MadeUnder, madeUnder } from './made-under.js';

export interface DemonstrationSource {
  readonly sources: Readonly<Record<'train' | 'test', TaskSource>>;
  readonly systemPrompts: Readonly<Record<string, string | undefined>>;
}

export interface RunSettings {
  readonly team: Team;
  readonly seed: number;
  readonly training: Recipe['training'];
  readonly evaluation: Recipe['evaluation'];
  readonly agents: Recipe['agents'];
  readonly estimator: OpenEstimator;
  /** The most updates that may be made between the weights that play a step and those that learn from it. */
  readonly staleness: number;
  /** The price of each agent's tokens. Agents without a price are missing. */
  readonly prices: Readonly<Record<string, Price>>;
  readonly demonstrations: DemonstrationSource;
  /** Whether policies learn from demonstrations first, each its own or all a common base. */
  readonly warmStartShare: 'base' | 'policy' | undefined;
  /** The settings that parts of its progress are made under. */
  readonly under: MadeUnder;
}

export function runSettings(recipe: Recipe): RunSettings {
  const { team, seed, training, evaluation, agents, policies, tasks, warmStart, estimator } = recipe;
  const losses = Object.keys(policies).map((policy) => [policy, lossSettings(recipe, policy)]);
  return {
    team,
    seed,
    training,
    evaluation,
    agents,
    estimator,
    staleness: stalenessOf(recipe.rollout),
    prices: pricesOf(recipe),
    demonstrations: demonstrationsOf({ agents, team, tasks }),
    warmStartShare: warmStart?.share,
    under: madeUnder({ training, evaluation }, { agents, policies }, estimator, Object.fromEntries(losses)),
  };
}

export function demonstrationsOf({
  agents,
  team,
  tasks,
}: Pick<Recipe, 'agents' | 'team' | 'tasks'>): DemonstrationSource {
  const prompts = Object.keys(agents).map((agent) => [agent, systemPromptOf({ agents, team }, agent)] as const);
  return { sources: tasks, systemPrompts: Object.fromEntries(prompts) };
}

export const stalenessOf = (rollout: Recipe['rollout']): number => rollout?.staleness ?? 0;
