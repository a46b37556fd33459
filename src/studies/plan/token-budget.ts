/** What a run takes in episodes and tokens, from what an episode takes: rehearsed before the run, or played by a probe. */
import { needOf } from '../../advantage/estimators/index.js';
import type { Episode } from '../../core/episode.js';
import { mean } from '../../core/statistics.js';
import type { Recipe } from '../../recipe/recipe.js';

/** What an agent says in an episode, on average. */
export interface AgentUse {
  readonly calls: number;
  /** A call. */
  readonly promptTokens: number;
  /** A call. */
  readonly responseTokens: number;
}

export interface Tokens {
  /** Of prompts, before what they share with others is saved. */
  readonly read: number;
  readonly generated: number;
  /** Prompt and response together through forward and backward pass, once an epoch; equal rows are merged on top of that. */
  readonly trained: number;
}

export interface PolicyBudget {
  /** Sequences that one step's update learns from. */
  readonly samples: number;
  readonly step: Tokens;
  /** All steps and evaluations, without a warm start. */
  readonly run: Tokens;
}

export interface TokenBudget {
  readonly episodes: { readonly step: number; readonly training: number; readonly evaluation: number };
  readonly policies: Readonly<Record<string, PolicyBudget>>;
  readonly run: Tokens;
}

/** Episodes of all evaluations of a run. */
export function evaluationEpisodes({ training: { steps }, evaluation }: Recipe): number {
  const { every, tasks, samples, samplesDuring = samples } = evaluation;
  const between = Math.max(0, Math.ceil(steps / every) - 1);
  return tasks * (samples * (steps > 0 ? 2 : 1) + samplesDuring * between);
}

/** By agent, over episodes that were played. An agent that was never asked is among them. */
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

/** Where a filter plays further tasks in place of those it drops, these are not counted. */
export function tokenBudget(recipe: Recipe, use: Readonly<Record<string, AgentUse>>): TokenBudget {
  const { steps, tasksPerStep, groupSize } = recipe.training;
  const learnt = tasksPerStep * groupSize;
  const step = learnt + (needOf(recipe.advantage) === 'baseline' ? tasksPerStep : 0);
  const episodes = { step, training: step * steps, evaluation: evaluationEpisodes(recipe) };
  const policies = Object.fromEntries(
    Object.entries(recipe.policies).map(([policy, { epochs }]): [string, PolicyBudget] => {
      const ofPolicy = Object.entries(use).flatMap(([agent, used]) => (recipe.assign[agent] === policy ? [used] : []));
      const sum = (of: (agent: AgentUse) => number) =>
        ofPolicy.reduce((total, agent) => total + agent.calls * of(agent), 0);
      const [read, generated] = [sum(({ promptTokens }) => promptTokens), sum(({ responseTokens }) => responseTokens)];
      const trained = learnt * epochs * (read + generated);
      const all = episodes.training + episodes.evaluation;
      return [
        policy,
        {
          samples: learnt * sum(() => 1),
          step: { read: step * read, generated: step * generated, trained },
          run: { read: all * read, generated: all * generated, trained: trained * steps },
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
  return { episodes, policies, run };
}
