/** The events of a step, made of its results. */
import { type AdvantageSizes, advantageSizes } from '../../advantage/analysis/advantage-sizes.js';
import { type AgentRewards, agentRewards } from '../../advantage/analysis/agent-rewards.js';
import { explainInflation } from '../../advantage/analysis/diagnosis.js';
import { TurnBatch } from '../../advantage/turn-batch.js';
import {
  type Episode,
  type EpisodeGroup,
  type History,
  inCanonicalOrder,
  responseTokens,
  successOf,
  type Turn,
} from '../../core/episode.js';
import type { AgentStep, EpisodeFailed, Step, Warning } from '../../core/events.js';
import { type Spending, spentTogether } from '../../core/play/token-count.js';
import { mean, standardDeviation } from '../../core/statistics.js';
import type { Recipe } from '../../recipe/recipe.js';
import { missingParts } from '../../rollout/part-weights.js';
import { agentPartMeans, namedMeans } from '../named-means.js';
import { agentHealth, groupKinds, type PlayedTurn } from '../stability/agent-health.js';
import { type AgentUpdate, LOSS_TERMS, type Updates } from '../update/update-result.js';
import { rewardRecord, type StepAdvantages } from './advantages.js';
import { playedAgain } from './branches.js';
import { countChains } from './chains.js';
import type { StepRollout } from './rollout-step.js';

export function stepEvent(
  step: number,
  { all, scored, greedy, branches, filter, levels, staleness }: StepRollout,
  advantages: StepAdvantages,
  measured: Readonly<Record<string, number>>,
  updates: Updates,
  spending: Readonly<Record<string, Spending>>,
  phaseSeconds: Step['phaseSeconds'],
): Step {
  const episodes = scored.flatMap((group) => group.episodes);
  const against = [...greedy, ...playedAgain(branches)];
  const turns = episodes.flatMap((episode) =>
    inCanonicalOrder(episode.turns).map(
      (turn): PlayedTurn => ({ episode, turn, advantage: advantages.byTurn.get(turn)?.advantage ?? 0 }),
    ),
  );
  const tokens = (counted: readonly Turn[]) => counted.reduce((sum, { response }) => sum + response.length, 0);
  const rewards = episodes.map(({ score }) => score.team);
  const batch = new TurnBatch(turns.map(({ episode, turn }) => rewardRecord(episode, turn)));
  const earned = agentRewards(batch);
  const sizes = advantageSizes(
    batch,
    turns.map(({ advantage }) => advantage),
  );
  const chainsOfAgents = countChains(episodes);
  const updateOf = (agent: string) => Object.values(updates).find((update) => agent in update.agents)?.agents[agent];
  return {
    type: 'step',
    step,
    seconds: phaseSeconds.rollout + phaseSeconds.advantage + phaseSeconds.update,
    phaseSeconds,
    tokens: {
      sampled: tokens([...episodes, ...against].flatMap((episode) => episode.turns)),
      trained: Object.values(updates)
        .flatMap((update) => Object.values(update.agents))
        .reduce((sum, { tokens }) => sum + tokens, 0),
    },
    ...costOfAll(Object.values(spending)),
    episodes: episodeCounts(all),
    reward: { mean: mean(rewards), std: standardDeviation(rewards) },
    success: mean(episodes.map(successOf)),
    ...namedMeans(episodes),
    agents: Object.fromEntries(
      batch.agentNames.sort().map((agent) => {
        const ofAgent = turns.filter(({ turn }) => turn.agent === agent);
        const numbers = { ...(earned[agent] as AgentRewards), ...(sizes[agent] as AdvantageSizes) };
        const measures = { ...agentStep(ofAgent, numbers, updateOf(agent)), ...agentPartMeans(episodes, agent) };
        const chains = chainsOfAgents[agent];
        const counted = chains === undefined ? {} : { chains };
        const inflation = inflationOf(agent, advantages, measured[agent]);
        return [agent, { ...measures, ...counted, ...inflation, ...spending[agent] }];
      }),
    ),
    policies: Object.fromEntries(
      Object.entries(updates).map(
        ([policy, { gradientNorm = Number.NaN, outcome, agents: _, tokens: __, ...update }]) => [
          policy,
          { gradientNorm, ...update },
        ],
      ),
    ),
    groups: groupKinds(scored),
    ...(levels === undefined ? {} : { levels }),
    ...(filter === undefined ? {} : { filter }),
    ...(staleness === undefined ? {} : { staleness }),
    ...(against.length === 0 ? {} : { baseline: baselineOf(against) }),
  };
}

function episodeCounts(groups: readonly EpisodeGroup[]): NonNullable<Step['episodes']> {
  const episodes = groups.flatMap((group) => group.episodes);
  const refused = new Map<string, number>();
  for (const [agent, calls] of episodes.flatMap((episode) => Object.entries(episode.refused ?? {})))
    refused.set(agent, (refused.get(agent) ?? 0) + calls);
  return {
    played: episodes.length,
    failed: episodes.filter(({ failure }) => failure !== undefined).length,
    ...(refused.size === 0 ? {} : { refused: Object.fromEntries([...refused].sort()) }),
  };
}

function costOfAll(spending: readonly Spending[]): Pick<Step, 'cost'> {
  const { cost } = spentTogether(spending);
  return cost === undefined ? {} : { cost };
}

function baselineOf(against: readonly Episode[]): NonNullable<Step['baseline']> {
  const failed = against.filter(({ failure }) => failure !== undefined).length;
  return { episodes: against.length, reward: mean(against.map(({ score }) => score.team)), failed };
}

/** An agent's inflation, and where it comes from. */
function inflationOf(
  agent: string,
  { inflation: predictions, ownShare: ownShares, calls: ofAgents }: StepAdvantages,
  measured: number | undefined,
): Pick<AgentStep, 'inflation' | 'calls'> {
  const [inflation, ownShare, calls] = [predictions[agent], ownShares[agent], ofAgents[agent]];
  const predicted = inflation ?? 1; // without a group whose scores differ there is nothing to inflate
  return {
    inflation: {
      predicted,
      ...(measured === undefined ? {} : { measured, covariance: measured - predicted }),
      ...(ownShare === undefined ? {} : { ownShare }),
      ...(calls === undefined ? {} : { explanation: explainInflation(agent, { inflation, ownShare, calls }) }),
    },
    ...(calls === undefined ? {} : { calls }),
  };
}

function agentStep(
  turns: readonly PlayedTurn[],
  { rewardMean, rewardStd, groupSpread, maxAbs }: AgentRewards & AdvantageSizes,
  update: AgentUpdate | undefined,
): Omit<AgentStep, 'inflation'> {
  return {
    ...(turns.some(({ turn }) => turn.frozen === true) ? { frozen: true } : {}),
    turns: turns.length,
    rewardMean,
    rewardStd,
    invalid: mean(turns.map(({ turn }) => (turn.valid ? 0 : 1))),
    ...sumOfHistories(turns),
    ...countOfIgnored(turns),
    health: { groupSpread, ...agentHealth(turns) },
    maxAbsAdvantage: maxAbs,
    gradientNorm: update === undefined ? 0 : (update.gradientNorm ?? Number.NaN),
    ...(update?.agreement === undefined ? {} : { agreement: update.agreement }),
    loss: update?.loss ?? 0,
    entropy: update?.entropy ?? 0,
    clipFraction: update?.clipFraction ?? 0,
    kl: update?.kl ?? 0,
    maxRatioDeviation: update?.maxRatioDeviation ?? 0,
    logprobGap: update?.logprobGap ?? 0,
    responseTokens: mean(turns.map(({ turn }) => responseTokens(turn))),
    ...Object.fromEntries(LOSS_TERMS.flatMap((name) => (update?.[name] === undefined ? [] : [[name, update[name]]]))),
  };
}

function sumOfHistories(turns: readonly PlayedTurn[]): Pick<AgentStep, 'history'> {
  const histories = turns.flatMap(({ turn }) => turn.history ?? []);
  if (histories.length === 0) return {};
  const sum = (kind: keyof History) => histories.reduce((total, history) => total + history[kind], 0);
  return { history: { exact: sum('exact'), byText: sum('byText'), byCalls: sum('byCalls'), foreign: sum('foreign') } };
}

function countOfIgnored(turns: readonly PlayedTurn[]): Pick<AgentStep, 'ignored'> {
  const counts = new Map<string, number>();
  for (const { turn } of turns)
    for (const setting of turn.ignored ?? []) counts.set(setting, (counts.get(setting) ?? 0) + 1);
  return counts.size === 0 ? {} : { ignored: Object.fromEntries([...counts].sort()) };
}

/** An event for every episode that failed, with what became of it. */
export function failureEvents(
  groups: readonly EpisodeGroup[],
  step: number,
  action: EpisodeFailed['action'],
): EpisodeFailed[] {
  return groups
    .flatMap(({ episodes }) => episodes)
    .flatMap(({ task, sample, failure }) =>
      failure === undefined
        ? []
        : [{ type: 'episode.failed', step, task: task.id, episode: sample, ...failure, action } as const],
    );
}

/**
 * A warning for every agent whose sampler and trainer differ by more than the recipe lets pass. Of weights that were
 * updated since they played it cannot be told.
 */
export function gapWarnings(
  step: number,
  { staleness = 0 }: Pick<StepRollout, 'staleness'>,
  updates: Updates,
  limit: number,
): Warning[] {
  if (staleness > 0) return [];
  return Object.values(updates)
    .flatMap(({ agents }) => Object.entries(agents))
    .filter(([, { logprobGap }]) => logprobGap > limit)
    .map(([agent, { logprobGap }]) => ({
      type: 'warning',
      code: 'logprobs.differ',
      message: `step ${step}: the log-probs with which agent '${agent}' was sampled differ from the trainer's by ${logprobGap.toPrecision(3)} on average (training.logprobGap: ${limit})`,
    }));
}

/** The warning about weights of parts of the reward that nobody earns, once, since they are probably misspelt. */
export function partWarnings(
  { training: { partWeights } }: Pick<Recipe, 'training'>,
  step: number,
  { all }: Pick<StepRollout, 'all'>,
): Warning[] {
  if (step !== 1) return [];
  const missing = missingParts(
    all.flatMap(({ episodes }) => episodes),
    partWeights,
  );
  return missing.map((name) => ({
    type: 'warning',
    code: 'parts.missing',
    message: `training.partWeights.${name}: no episode's reward has a part of this name, so its weight changes nothing`,
  }));
}
