/** The episodes and tokens of a run, from what an episode takes: rehearsed before the run, or played by a probe. */
import { alternativesOf, needOf } from '../../advantage/estimators/index.js';
import type { Episode } from '../../core/episode.js';
import { priced, type TokenCount } from '../../core/play/token-count.js';
import { mean } from '../../core/statistics.js';
import { pricesOf, type Recipe } from '../../recipe/recipe.js';

/** An agent's calls and tokens in an episode, on average. */
export interface AgentUse {
  readonly calls: number;
  /** Tokens of a prompt. */
  readonly promptTokens: number;
  /** Tokens of a response. */
  readonly responseTokens: number;
}

export interface Tokens {
  /** Tokens of prompts, shared prefixes counted each time. */
  readonly read: number;
  readonly generated: number;
  /** Tokens of prompts and responses through forward and backward pass, once an epoch, before equal rows are merged. */
  readonly trained: number;
}

export interface PolicyBudget {
  /** Number of sequences that one step's update learns from. */
  readonly samples: number;
  readonly step: Tokens;
  /** All steps and evaluations, without a warm start. */
  readonly run: Tokens;
}

/** An agent's tokens: in an episode that is learnt from, in all of the run, and what those cost. */
export interface AgentBudget {
  readonly episode: TokenCount;
  readonly run: TokenCount;
  /** Absent where its policy has no price. */
  readonly cost?: number;
}

export interface TokenBudget {
  readonly episodes: { readonly step: number; readonly training: number; readonly evaluation: number };
  readonly policies: Readonly<Record<string, PolicyBudget>>;
  readonly agents: Readonly<Record<string, AgentBudget>>;
  readonly run: Tokens;
  /** What the run costs, a warm start aside; absent where no policy has a price. */
  readonly cost?: number;
}

/** Counts the episodes of all evaluations of a run. */
export function evaluationEpisodes({ training: { steps }, evaluation }: Recipe): number {
  const { every, tasks, samples, samplesDuring = samples } = evaluation;
  const between = Math.max(0, Math.ceil(steps / every) - 1);
  return tasks * (samples * (steps > 0 ? 2 : 1) + samplesDuring * between);
}

/** The use of each agent over episodes that were played; an agent that was never called is among them. */
export function agentUse(recipe: Recipe, episodes: readonly Episode[]): Record<string, AgentUse> {
  const turns = episodes.flatMap((episode) => episode.turns);
  return Object.fromEntries(
    Object.keys(recipe.agents).map((agent) => {
      const ofAgent = turns.filter((turn) => turn.agent === agent);
      const use = {
        calls: ofAgent.length / Math.max(1, episodes.length),
        promptTokens: ofAgent.length === 0 ? 0 : mean(ofAgent.map(({ prompt }) => prompt.length)),
        responseTokens: ofAgent.length === 0 ? 0 : mean(ofAgent.map(({ response }) => response.length)),
      };
      return [agent, use];
    }),
  );
}

/**
 * What an estimator that wants alternatives plays of each episode once more: the episodes, one for each turn that is
 * learnt from, and as how many whole ones they count. Turn i of n leaves n - i of the episode to play, (n + 1) / 2 of n
 * on average.
 */
export function alternatives(
  { advantage, assign }: Pick<Recipe, 'advantage' | 'assign'>,
  use: Readonly<Record<string, AgentUse>>,
): { readonly episodes: number; readonly whole: number } {
  const calls = (agents: readonly [string, AgentUse][]) => agents.reduce((sum, [, { calls }]) => sum + calls, 0);
  const all = calls(Object.entries(use));
  const learnt = calls(Object.entries(use).filter(([agent]) => typeof assign[agent] === 'string'));
  const episodes = alternativesOf(advantage) * learnt;
  return { episodes, whole: all === 0 ? 0 : (episodes * (all + 1)) / (2 * all) };
}

function agentBudgets(
  recipe: Recipe,
  { use, evaluated }: Readonly<Record<'use' | 'evaluated', Readonly<Record<string, AgentUse>>>>,
  episodes: TokenBudget['episodes'],
): Record<string, AgentBudget> {
  const { steps, tasksPerStep, groupSize } = recipe.training;
  const prices = pricesOf(recipe);
  return Object.fromEntries(
    Object.entries(use).map(([agent, used]) => {
      const policy = recipe.assign[agent];
      const epochs = typeof policy === 'string' ? (recipe.policies[policy]?.epochs ?? 0) : 0;
      const episode = played(used, epochs);
      const elsewhere = played(evaluated[agent] ?? used, 0);
      const both = (of: (tokens: TokenCount) => number) =>
        episodes.training * of(episode) + episodes.evaluation * of(elsewhere);
      const run = {
        read: both(({ read }) => read),
        written: both(({ written }) => written),
        trained: steps * tasksPerStep * groupSize * episode.trained,
      };
      const { cost } = priced(run, prices[agent]);
      return [agent, { episode, run, ...(cost === undefined ? {} : { cost }) }];
    }),
  );
}

function played({ calls, promptTokens, responseTokens }: AgentUse, epochs: number): TokenCount {
  const [read, written] = [calls * promptTokens, calls * responseTokens];
  return { read, written, trained: epochs * (read + written) };
}

/**
 * The budget of a run. Tasks that a filter plays in place of those that it drops are not counted.
 * @param evaluated What evaluations take, where that is not what training takes
 */
export function tokenBudget(
  recipe: Recipe,
  use: Readonly<Record<string, AgentUse>>,
  evaluated: Readonly<Record<string, AgentUse>> = use,
): TokenBudget {
  const { steps, tasksPerStep, groupSize } = recipe.training;
  const learnt = tasksPerStep * groupSize;
  const again = alternatives(recipe, use);
  const greedy = needOf(recipe.advantage) === 'baseline' ? tasksPerStep : 0;
  const inStep = learnt * (1 + again.episodes) + greedy;
  const episodes = { step: inStep, training: inStep * steps, evaluation: evaluationEpisodes(recipe) };
  /** Episodes by what is played of them, a part where they begin with turns of another. */
  const step = learnt * (1 + again.whole) + greedy;
  const policies = Object.fromEntries(
    Object.entries(recipe.policies).map(([policy, { epochs }]): [string, PolicyBudget] => {
      const sum = (uses: Readonly<Record<string, AgentUse>>, of: (agent: AgentUse) => number) =>
        Object.entries(uses).reduce(
          (total, [agent, used]) => total + (recipe.assign[agent] === policy ? used.calls * of(used) : 0),
          0,
        );
      const read = ({ promptTokens }: AgentUse) => promptTokens;
      const generated = ({ responseTokens }: AgentUse) => responseTokens;
      const trained = learnt * epochs * (sum(use, read) + sum(use, generated));
      const inRun = (of: (agent: AgentUse) => number) =>
        step * steps * sum(use, of) + episodes.evaluation * sum(evaluated, of);
      return [
        policy,
        {
          samples: learnt * sum(use, () => 1),
          step: { read: step * sum(use, read), generated: step * sum(use, generated), trained },
          run: { read: inRun(read), generated: inRun(generated), trained: trained * steps },
        },
      ];
    }),
  );
  const total = (of: (tokens: Tokens) => number) => Object.values(policies).reduce((sum, { run }) => sum + of(run), 0);
  const run = {
    read: total(({ read }) => read),
    generated: total(({ generated }) => generated),
    trained: total(({ trained }) => trained),
  };
  const agents = agentBudgets(recipe, { use, evaluated }, { ...episodes, training: step * steps });
  const costs = Object.values(agents).flatMap(({ cost }) => cost ?? []);
  return { episodes, policies, agents, run, ...(costs.length > 0 && { cost: costs.reduce((a, b) => a + b, 0) }) };
}
