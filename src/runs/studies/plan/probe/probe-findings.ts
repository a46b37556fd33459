/** The findings of a probe: numbers about a recipe, computed from a few dozen groups of episodes. */

import type { AgentStep } from '@drmas/engine/events';
import { meanResponseTokens } from '@drmas/engine/host';
import { largest, mean, meansByKey } from '@drmas/engine/math';
import {
  agentReward,
  type Episode,
  type EpisodeGroup,
  scoredGroups,
  successOf,
  type Turn,
  trainedTurns,
  turnReward,
} from '@drmas/engine/nouns';
import type { AgentCalls } from '../../../../method/advantage.js';
import {
  type AdvantageSizes,
  type AgentDiagnosis,
  type AgentRewards,
  advantageSizes,
  agentRewards,
  columnOf,
  countKinds,
  explainInflation,
  groupOutcomes,
  magnitude,
  openEstimator,
  TurnBatch,
  usualEstimators,
} from '../../../../method/advantage.js';
import {
  comparedEpisodes,
  namedMeans,
  rewardRecord,
  type StepAdvantages,
  stepAdvantages,
} from '../../../../method/index.js';
import type { Recipe } from '../../../../method/recipe.js';
import { applyFailureRule, type CostOfCalls, costOfCalls } from '../../../../teams/rollout.js';
import { scoreInterval } from '../../../../teams/tasks.js';

/** The usual estimators whose advantages do not depend on the scale of the rewards. */
const COMPARED = usualEstimators.filter((one) => openEstimator(one).laws.takesScaleOut);

/** An agent of the recipe, frozen or not. */
export interface AgentFindings
  extends Omit<AgentRewards, 'groupSpread' | 'rewardMean' | 'rewardStd'>,
    Pick<AgentStep, 'rewardMean' | 'rewardStd' | 'invalid' | 'responseTokens'> {
  /** The share of its turns whose output `maxTokens` cut short. */
  readonly cut: number;
  /** When it is called. Absent for an agent that does not train. */
  readonly calls?: AgentCalls;
  readonly measuredInflation?: number;
  /** The measured minus the predicted inflation: the covariance of the lemma. */
  readonly covariance?: number;
  readonly explanation?: string;
}

export interface EstimatorFindings {
  /** The predicted inflation (Lemma 4.2). Null if no group has enough spread. */
  readonly inflation: number | null;
  /** The share of its squared shared scores that its own rewards explain, 0..1. Null if there are too few turns. */
  readonly ownShare: number | null;
  readonly maxAbsAdvantage: number;
  /** Share of turns with advantage 0. */
  readonly silent: number;
}

export interface ProbeFindings {
  readonly tasks: number;
  readonly groupSize: number;
  readonly episodes: number;
  /**
   * Mean success over tasks (`successOf`), with a bootstrap interval over tasks. `best` is the mean of each task's
   * best.
   */
  readonly success: { readonly mean: number; readonly low: number; readonly high: number; readonly level: number };
  readonly best: number;
  readonly reward: number;
  /**
   * Counts of groups by outcome. `signal`: a turn has an advantage under the recipe's estimator, and the filter keeps
   * the group. `penaltiesOnly`: only penalties differ. `dropped`: more than penalties differs, but the filter drops the
   * group.
   */
  readonly groups: {
    readonly count: number;
    readonly mixed: number;
    readonly allRight: number;
    readonly allWrong: number;
    readonly signal: number;
    readonly penaltiesOnly: number;
    readonly dropped: number;
  };
  /** The share of episodes that equal an earlier sibling word for word. */
  readonly repeated: number;
  readonly agents: Readonly<Record<string, AgentFindings>>;
  /** Findings by estimator, then by agent. The recipe's own estimator comes first. */
  readonly estimators: Readonly<Record<string, Readonly<Record<string, EstimatorFindings>>>>;
  readonly parts: Readonly<Record<string, number>>;
  readonly ownRewards: Readonly<Record<string, number>>;
  /** Mean of each of the team's metrics over the episodes that have it. Absent if the team has no metrics. */
  readonly metrics?: Readonly<Record<string, number>>;
  readonly failures: Readonly<Record<string, number>>;
}

/**
 * @param measured The measured inflation of agents, if the recipe measures it
 * @throws ArgumentError if the estimator needs inputs that these episodes lack
 */
export function probeFindings(
  recipe: Recipe,
  groups: readonly EpisodeGroup[],
  advantages: StepAdvantages,
  measured: Readonly<Record<string, number>> = {},
): ProbeFindings {
  const { episodes } = advantages;
  // As evaluations count them: an episode without a score says nothing about the team.
  const scored = scoredGroups(groups);
  // As a step has them: policies learn from no other failed episode.
  const lessons = applyFailureRule(groups, recipe.training.failedEpisodes);
  const kept = lessons.filter((group) => isKept(group, advantages));
  const perTask = scored.map((group) => group.episodes.map(successOf));
  const judged = scored.flatMap((group) => group.episodes);
  const rewarded = [...new Set(judged.flatMap(({ score }) => Object.keys(score.agents)))].sort();
  const { level } = recipe.evaluation;
  const { mean: success, low, high } = scoreInterval(perTask.map(mean), { level, seed: 0 });
  const others = COMPARED.filter(({ type }) => type !== recipe.advantage.type);
  const estimated: [string, StepAdvantages][] = [
    [recipe.advantage.type, advantages],
    ...others.map((advantage): [string, StepAdvantages] => [
      advantage.type,
      stepAdvantages({ estimator: openEstimator(advantage), agents: recipe.agents }, kept),
    ]),
  ];
  return {
    tasks: groups.length,
    groupSize: recipe.training.groupSize,
    episodes: episodes.length,
    success: { mean: success, low, high, level },
    best: mean(perTask.map(largest)),
    reward: mean(scored.map((group) => mean(group.episodes.map(({ score }) => score.team)))),
    groups: groupFindings(lessons, advantages, costOfCalls(recipe.agents, recipe.training.partWeights)),
    repeated: repeated(groups) / Math.max(1, episodes.length),
    agents: agentFindings(advantages, lessons, measured),
    estimators: Object.fromEntries(estimated.map(([type, each]) => [type, estimatorFindings(each)])),
    ...(episodes.some(({ score }) => score.metrics !== undefined)
      ? { metrics: meansByKey(episodes.map(({ score }) => score.metrics ?? {})) }
      : {}),
    parts: namedMeans(scored.map((group) => group.episodes)).parts ?? {},
    ownRewards: Object.fromEntries(
      // In an episode that fails, such an agent earns what the team earns.
      rewarded.map((agent) => [
        agent,
        mean(scored.map((group) => mean(group.episodes.map((episode) => agentReward(episode, agent))))),
      ]),
    ),
    failures: counted(episodes.flatMap(({ failure }) => failure?.reason ?? [])),
  };
}

/** Whether policies learn from a group: no filter has dropped it. */
const isKept = ({ episodes }: EpisodeGroup, { byEpisode }: StepAdvantages) =>
  episodes.length === 0 || episodes.some((episode) => byEpisode.has(episode));

/** The cost of calls counts as a penalty: it says nothing about the task. */
function groupFindings(
  groups: readonly EpisodeGroup[],
  advantages: StepAdvantages,
  costOf: CostOfCalls,
): ProbeFindings['groups'] {
  const { byEpisode } = advantages;
  const episodes = groups.map(comparedEpisodes);
  const turns = episodes.map((members) =>
    members.flatMap((episode) => trainedTurns(episode).map((turn) => ({ episode, turn }))),
  );
  const agentOf = ({ turn }: { readonly turn: Turn }) => turn.agent;
  const outcomes = groupOutcomes(groups.length, {
    outcome: columnOf(episodes, (episode) => episode.score.team + costOf(episode)),
    success: columnOf(episodes, successOf),
    earned: columnOf(
      turns,
      ({ episode, turn }) =>
        turnReward(episode, turn) + turn.penalty + (turn.agent in episode.score.agents ? 0 : costOf(episode)),
      agentOf,
    ),
    reward: columnOf(turns, ({ episode, turn }) => turnReward(episode, turn), agentOf),
  });
  const teaches = (episode: Episode) =>
    (byEpisode.get(episode) ?? []).some((advantage) => advantage !== undefined && magnitude(advantage) > 0);
  const teaching = outcomes.filter((_, g) => episodes[g]?.some(teaches));
  const { mixed, allRight, allWrong } = countKinds(outcomes);
  const left = outcomes.filter((_, g) => !isKept(groups[g] as EpisodeGroup, advantages));
  return {
    count: groups.length,
    mixed,
    allRight,
    allWrong,
    signal: teaching.length,
    penaltiesOnly: countKinds(teaching).penaltiesOnly,
    dropped: left.filter(({ kind }) => kind === 'mixed' || kind === 'ownRewardsOnly').length,
  };
}

const agentsOf = (episodes: readonly Episode[]) =>
  [...new Set(episodes.flatMap(({ turns }) => turns.map(({ agent }) => agent)))].sort();

/** Rewards are those of the turns that policies may learn from; texts are measured in all episodes. */
function agentFindings(
  { episodes, inflation, ownShare, calls }: StepAdvantages,
  lessons: readonly EpisodeGroup[],
  measured: Readonly<Record<string, number>>,
): Record<string, AgentFindings> {
  const learnt = lessons.flatMap((group) => group.episodes);
  const batch = new TurnBatch(learnt.flatMap((episode) => episode.turns.map((turn) => rewardRecord(episode, turn))));
  const rewards = agentRewards(batch);
  return Object.fromEntries(
    agentsOf(episodes).map((agent): [string, AgentFindings] => {
      const turns = episodes.flatMap((episode) => episode.turns.filter((turn) => turn.agent === agent));
      const share = (of: (turn: Turn) => boolean) => mean(turns.map((turn) => Number(of(turn))));
      const earned = rewards[agent];
      return [
        agent,
        {
          turns: turns.length,
          callsPerEpisode: turns.length / Math.max(1, episodes.length),
          ...(earned && { rewardMean: earned.rewardMean, rewardStd: earned.rewardStd }),
          invalid: share(({ valid }) => !valid),
          cut: share(({ finishReason }) => finishReason === 'length'),
          ...meanResponseTokens(turns),
          ...diagnosis(
            agent,
            { inflation: inflation[agent], ownShare: ownShare[agent] },
            calls[agent],
            measured[agent],
          ),
        },
      ];
    }),
  );
}

function diagnosis(
  agent: string,
  { inflation, ownShare }: Omit<AgentDiagnosis, 'calls'>,
  calls: AgentCalls | undefined,
  measured: number | undefined,
): Pick<AgentFindings, 'calls' | 'measuredInflation' | 'covariance' | 'explanation'> {
  if (calls === undefined) return {};
  const explanation = explainInflation(agent, { inflation, ownShare, calls });
  if (measured === undefined || inflation === undefined) return { calls, explanation };
  return { calls, measuredInflation: measured, covariance: measured - inflation, explanation };
}

function estimatorFindings({ turns, records, inflation, ownShare }: StepAdvantages): Record<string, EstimatorFindings> {
  const batch = new TurnBatch(records);
  const sizes = advantageSizes(
    batch,
    turns.map(({ advantage }) => advantage),
  );
  return Object.fromEntries(
    batch.agentNames.sort().map((agent): [string, EstimatorFindings] => {
      const { maxAbs, zero } = sizes[agent] as AdvantageSizes;
      const predicted = { inflation: inflation[agent] ?? null, ownShare: ownShare[agent] ?? null };
      return [agent, { ...predicted, maxAbsAdvantage: maxAbs, silent: zero }];
    }),
  );
}

function repeated(groups: readonly EpisodeGroup[]): number {
  const words = ({ turns }: Episode) => JSON.stringify(turns.map(({ agent, text }) => [agent, text]));
  return groups.reduce((sum, { episodes }) => sum + episodes.length - new Set(episodes.map(words)).size, 0);
}

function counted(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}
