/** What a few dozen groups of episodes say about a recipe: numbers only, from the episodes alone. */
import { usualEstimators } from '../../advantage/analysis/compared-estimators.js';
import { openEstimator } from '../../advantage/estimators/index.js';
import { type Episode, type EpisodeGroup, responseTokens, type Turn, turnReward } from '../../core/episode.js';
import { mean, standardDeviation } from '../../core/statistics.js';
import type { Recipe } from '../../recipe/recipe.js';
import { bootstrapInterval } from '../../tasks/metrics.js';
import { magnitude, type StepAdvantages, stepAdvantages } from '../../training/step/advantages.js';

/** Those of the usual estimators whose advantages have one scale, whatever that of the rewards. */
const COMPARED = usualEstimators.filter((one) => openEstimator(one).laws.takesScaleOut);

export interface AgentFindings {
  readonly turns: number;
  readonly callsPerEpisode: number;
  readonly rewardMean: number;
  readonly rewardStd: number;
  /** Shares of its turns: output that the parser refused; output that `maxTokens` cut short. */
  readonly invalid: number;
  readonly cut: number;
  /** A turn. */
  readonly responseTokens: number;
}

/** What an estimator makes of an agent's turns. */
export interface EstimatorFindings {
  /** Lemma 4.2; null where no group has a spread to judge by. */
  readonly inflation: number | null;
  readonly maxAbsAdvantage: number;
  /** Share of turns with advantage 0. */
  readonly silent: number;
}

export interface ProbeFindings {
  readonly tasks: number;
  readonly groupSize: number;
  readonly episodes: number;
  /** Mean reward of the team over tasks, with a bootstrap interval over tasks; `best` is the mean of each task's best. */
  readonly success: { readonly mean: number; readonly low: number; readonly high: number; readonly level: number };
  readonly best: number;
  /** By outcome; `signal`: a turn has an advantage under the recipe's estimator; `penaltiesOnly`: only penalties differ. */
  readonly groups: {
    readonly count: number;
    readonly mixed: number;
    readonly allRight: number;
    readonly allWrong: number;
    readonly signal: number;
    readonly penaltiesOnly: number;
  };
  /** Share of episodes whose every word an earlier sibling had said. */
  readonly repeated: number;
  readonly agents: Readonly<Record<string, AgentFindings>>;
  /** By estimator, then by agent; the recipe's own first. */
  readonly estimators: Readonly<Record<string, Readonly<Record<string, EstimatorFindings>>>>;
  /** Mean of each named part of the reward, and of each agent's own reward where it has one. */
  readonly parts: Readonly<Record<string, number>>;
  readonly ownRewards: Readonly<Record<string, number>>;
  /** Failed episodes by reason. */
  readonly failures: Readonly<Record<string, number>>;
}

/** @throws ArgumentError when the recipe's estimator needs what these episodes do not have */
export function probeFindings(
  recipe: Recipe,
  groups: readonly EpisodeGroup[],
  advantages: StepAdvantages,
): ProbeFindings {
  const { turns, episodes } = advantages;
  const perTask = groups.map((group) => group.episodes.map(({ score }) => score.team));
  const { level } = recipe.evaluation;
  const { mean: success, low, high } = bootstrapInterval(perTask.map(mean), { level, seed: 0 });
  const agents = [...new Set(turns.map(({ turn }) => turn.agent))].sort();
  const players = [...new Set(episodes.flatMap((episode) => episode.turns.map(({ agent }) => agent)))].sort();
  const others = COMPARED.filter(({ type }) => type !== recipe.advantage.type);
  const estimated: [string, StepAdvantages][] = [
    [recipe.advantage.type, advantages],
    ...others.map((advantage): [string, StepAdvantages] => [
      advantage.type,
      stepAdvantages({ advantage, agents: recipe.agents }, groups),
    ]),
  ];
  return {
    tasks: groups.length,
    groupSize: recipe.training.groupSize,
    episodes: episodes.length,
    success: { mean: success, low, high, level },
    best: mean(perTask.map((scores) => Math.max(...scores))),
    groups: groupFindings(groups, advantages),
    repeated: repeated(groups) / Math.max(1, episodes.length),
    agents: Object.fromEntries(players.map((agent) => [agent, agentFindings(agent, episodes)])),
    estimators: Object.fromEntries(estimated.map(([type, each]) => [type, estimatorFindings(agents, each)])),
    parts: means(episodes.map(({ score }) => score.parts)),
    ownRewards: means(episodes.map(({ score }) => score.agents)),
    failures: counted(episodes.flatMap(({ failure }) => failure?.reason ?? [])),
  };
}

function groupFindings(groups: readonly EpisodeGroup[], { byEpisode }: StepAdvantages): ProbeFindings['groups'] {
  const counts = { count: groups.length, mixed: 0, allRight: 0, allWrong: 0, signal: 0, penaltiesOnly: 0 };
  for (const { episodes } of groups) {
    const outcomes = episodes.map(({ score }) => score.team);
    if (outcomes.some((outcome) => outcome !== outcomes[0])) counts.mixed++;
    else counts[(outcomes[0] ?? 0) > 0 ? 'allRight' : 'allWrong']++;
    const teaches = episodes.some((episode) =>
      (byEpisode.get(episode) ?? []).some((a) => a !== undefined && magnitude(a) > 0),
    );
    if (!teaches) continue;
    counts.signal++;
    const earned = new Set(episodes.map(earnings));
    if (earned.size === 1) counts.penaltiesOnly++;
  }
  return counts;
}

/** What an episode earned before penalties. */
const earnings = ({ score, turns }: Episode) =>
  JSON.stringify([score.team, score.agents, turns.flatMap(({ stepReward }) => stepReward ?? [])]);

function agentFindings(agent: string, episodes: readonly Episode[]): AgentFindings {
  const turnsIn = ({ turns }: Episode) => turns.filter((turn) => turn.agent === agent);
  const own = episodes.flatMap(turnsIn);
  const rewards = episodes.flatMap((episode) => turnsIn(episode).map((turn) => turnReward(episode, turn)));
  const share = (of: (turn: Turn) => boolean) => mean(own.map((turn) => Number(of(turn))));
  return {
    turns: own.length,
    callsPerEpisode: own.length / Math.max(1, episodes.length),
    rewardMean: mean(rewards),
    rewardStd: standardDeviation(rewards),
    invalid: share(({ valid }) => !valid),
    cut: share(({ finishReason }) => finishReason === 'length'),
    responseTokens: mean(own.map(responseTokens)),
  };
}

function estimatorFindings(agents: readonly string[], { turns, inflation }: StepAdvantages) {
  return Object.fromEntries(
    agents.map((agent): [string, EstimatorFindings] => {
      const sizes = turns.filter(({ turn }) => turn.agent === agent).map(({ advantage }) => magnitude(advantage));
      return [
        agent,
        {
          inflation: inflation[agent] ?? null,
          maxAbsAdvantage: sizes.reduce((most, size) => Math.max(most, size), 0),
          silent: mean(sizes.map((size) => Number(size === 0))),
        },
      ];
    }),
  );
}

function repeated(groups: readonly EpisodeGroup[]): number {
  const said = ({ turns }: Episode) => JSON.stringify(turns.map(({ agent, text }) => [agent, text]));
  return groups.reduce((sum, { episodes }) => sum + episodes.length - new Set(episodes.map(said)).size, 0);
}

/** Mean of every key over the records that have it. */
function means(records: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const keys = [...new Set(records.flatMap(Object.keys))].sort();
  return Object.fromEntries(keys.map((key) => [key, mean(records.flatMap((record) => record[key] ?? []))]));
}

function counted(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}
