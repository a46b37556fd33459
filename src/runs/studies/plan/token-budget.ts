/** The episodes and tokens of a run, from the calls and tokens of an episode. */

import { playedTokens, priced, type TokenCount } from '@drmas/engine/host';
import { type Episode, inCanonicalOrder, trainedTurns } from '@drmas/engine/nouns';
import { chainsOf, type PlannedRollouts, wantedSignals } from '../../../method/index.js';
import { pricesOf, type Recipe } from '../../../method/recipe.js';

/** An agent's calls and tokens in an episode, on average. */
export interface AgentUse {
  readonly calls: number;
  readonly promptTokens: number;
  readonly responseTokens: number;
  /**
   * The sequences that its calls in an episode are in an update, and their tokens, if some calls continue earlier ones.
   * Absent if each call is a sequence of its own.
   */
  readonly chains?: { readonly sequences: number; readonly tokens: number };
}

const sequencesOf = ({ calls, chains }: AgentUse): number => chains?.sequences ?? calls;
const learntTokens = ({ calls, promptTokens, responseTokens, chains }: AgentUse): number =>
  chains?.tokens ?? calls * (promptTokens + responseTokens);

export interface Tokens {
  /** Tokens of prompts. A prefix that prompts share counts for each prompt. */
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

export interface AgentBudget {
  readonly episode: TokenCount;
  readonly run: TokenCount;
  /** Absent if its policy has no price. */
  readonly cost?: number;
}

export interface TokenBudget {
  readonly episodes: { readonly step: number; readonly training: number; readonly evaluation: number };
  readonly policies: Readonly<Record<string, PolicyBudget>>;
  readonly agents: Readonly<Record<string, AgentBudget>>;
  readonly run: Tokens;
  /** The cost of the run without the warm start; absent if no policy has a price. */
  readonly cost?: number;
}

/** The evaluations of a run: the first and the last, and the others, each with the episodes of one round. */
function evaluationRounds({ training: { steps }, evaluation }: Recipe, tasks: number) {
  const { every, samples, samplesDuring = samples } = evaluation;
  return [
    { rounds: steps > 0 ? 2 : 1, episodes: tasks * samples },
    { rounds: Math.max(0, Math.ceil(steps / every) - 1), episodes: tasks * samplesDuring },
  ] as const;
}

/** @param tasks The number of tasks in an evaluation */
export const evaluationEpisodes = (recipe: Recipe, tasks: number): number =>
  evaluationRounds(recipe, tasks).reduce((sum, { rounds, episodes }) => sum + rounds * episodes, 0);

/** The use of each agent in played episodes. Agents that were never called are included. */
export function agentUse(recipe: Recipe, episodes: readonly Episode[]): Record<string, AgentUse> {
  const turns = episodes.flatMap((episode) => episode.turns);
  return Object.fromEntries(
    Object.keys(recipe.agents).map((agent) => {
      const ofAgent = turns.filter((turn) => turn.agent === agent);
      const { read, written } = playedTokens(ofAgent);
      const turnCount = Math.max(1, ofAgent.length);
      const calls = ofAgent.length / Math.max(1, episodes.length);
      const tokens = { promptTokens: read / turnCount, responseTokens: written / turnCount };
      return [agent, { calls, ...tokens, ...chainsIn(episodes, agent) }];
    }),
  );
}

function chainsIn(episodes: readonly Episode[], agent: string): Pick<AgentUse, 'chains'> {
  const turns = episodes.map((episode) => trainedTurns(episode).filter((turn) => turn.agent === agent));
  const chains = turns.flatMap((ofEpisode) => chainsOf(inCanonicalOrder(ofEpisode)));
  if (chains.length === turns.flat().length) return {};
  const tokens = sumOf(
    chains.map((chain) => (chain.at(-1)?.prompt.length ?? 0) + (chain.at(-1)?.response.length ?? 0)),
  );
  return { chains: { sequences: chains.length / episodes.length, tokens: tokens / episodes.length } };
}

export function extraRollouts(
  { estimator, policies, assign, training }: Pick<Recipe, 'estimator' | 'policies' | 'assign' | 'training'>,
  use: Readonly<Record<string, AgentUse>>,
): PlannedRollouts[] {
  const callsOf = (agents: readonly [string, AgentUse][]) => sumOf(agents.map(([, { calls }]) => calls));
  const agents = Object.entries(use);
  const learning = agents.filter(([agent]) => typeof assign[agent] === 'string');
  const { tasksPerStep: tasks, groupSize } = training;
  const calls = { all: callsOf(agents), learnt: callsOf(learning) };
  const step = { estimator, tasks, episodes: tasks * groupSize, calls };
  return wantedSignals({ estimator, policies }).flatMap(({ plan }) => (plan === undefined ? [] : [plan(step)]));
}

const sumOf = (numbers: readonly number[]) => numbers.reduce((sum, each) => sum + each, 0);

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

function played(used: AgentUse, epochs: number): TokenCount {
  const { calls, promptTokens, responseTokens } = used;
  return { read: calls * promptTokens, written: calls * responseTokens, trained: epochs * learntTokens(used) };
}

/**
 * The budget of a run. Tasks that a filter plays as replacements are not counted.
 * @param heldOut The number of tasks in an evaluation
 * @param evaluated The use in evaluations, if it differs from training
 */
export function tokenBudget(
  recipe: Recipe,
  heldOut: number,
  use: Readonly<Record<string, AgentUse>>,
  evaluated: Readonly<Record<string, AgentUse>> = use,
): TokenBudget {
  const { steps, tasksPerStep, groupSize } = recipe.training;
  const learnt = tasksPerStep * groupSize;
  const extra = extraRollouts(recipe, use);
  const inStep = learnt + sumOf(extra.map(({ episodes }) => episodes));
  const episodes = { step: inStep, training: inStep * steps, evaluation: evaluationEpisodes(recipe, heldOut) };
  const step = learnt + sumOf(extra.map(({ whole }) => whole));
  const policies = Object.fromEntries(
    Object.entries(recipe.policies).map(([policy, { epochs }]): [string, PolicyBudget] => {
      const sum = (uses: Readonly<Record<string, AgentUse>>, of: (agent: AgentUse) => number) =>
        Object.entries(uses).reduce(
          (total, [agent, used]) => total + (recipe.assign[agent] === policy ? of(used) : 0),
          0,
        );
      const read = ({ calls, promptTokens }: AgentUse) => calls * promptTokens;
      const generated = ({ calls, responseTokens }: AgentUse) => calls * responseTokens;
      const trained = learnt * epochs * sum(use, learntTokens);
      const inRun = (of: (agent: AgentUse) => number) =>
        step * steps * sum(use, of) + episodes.evaluation * sum(evaluated, of);
      return [
        policy,
        {
          samples: learnt * sum(use, sequencesOf),
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
