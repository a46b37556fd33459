import { estimateAdvantages, estimateReturns } from '../../advantage/estimate.js';
import type { Estimator } from '../../advantage/estimators/index.js';
import { predictedInflation } from '../../advantage/inflation.js';
import type { TurnRecord } from '../../core/advantage.js';
import { type Episode, type EpisodeGroup, type Turn, trainedTurns, turnReward } from '../../core/episode.js';

/** A turn with what it earned and what that is worth beside the others. */
export interface ComparedTurn {
  readonly episode: Episode;
  readonly turn: Turn;
  readonly reward: number;
  /** One number for all of its tokens, or one a token. */
  readonly advantage: number | readonly number[];
  /** What a critic is to predict at each token, where the estimator uses one. */
  readonly returns?: readonly number[];
}

/** All turns of a step that are learnt from, in the order of tasks, samples and calls. */
export interface Comparison {
  readonly turns: readonly ComparedTurn[];
  readonly episodes: readonly Episode[];
  /** Of each episode's turns; undefined for those of frozen agents. */
  readonly advantages: ReadonlyMap<Episode, readonly (number | readonly number[] | undefined)[]>;
  /** The turns as the estimator saw them. */
  readonly records: readonly TurnRecord[];
  /** Lemma 4.2 by agent; agents without a group to judge by are missing. */
  readonly inflation: Readonly<Record<string, number>>;
}

/** What estimators may need of a turn that its episode does not tell. */
export type TurnExtras = ReadonlyMap<Turn, Pick<TurnRecord, 'tokenRewards' | 'values' | 'baseline'>>;

/**
 * Compares the turns of a step's episodes with the estimator. Turns of frozen agents are nowhere in it: not in the statistics of a
 * task, not in an episode's score. Afterwards an agent's advantages are multiplied by its weight.
 */
export function compare(
  groups: readonly EpisodeGroup[],
  estimator: Estimator,
  extras: TurnExtras = new Map(),
  agents: Readonly<Record<string, { readonly rewardWeight: number }>> = {},
): Comparison {
  const episodes = groups.flatMap((group) => group.episodes);
  const pairs = episodes.flatMap((episode) => trainedTurns(episode).map((turn) => ({ episode, turn })));
  const records = pairs.map(({ episode, turn }) => ({ ...turnRecord(episode, turn), ...extras.get(turn) }));
  const estimated = estimateAdvantages(records, estimator);
  const returns = estimateReturns(records, estimator);
  const turns = pairs.map(({ episode, turn }, i) => ({
    episode,
    turn,
    reward: (records[i] as TurnRecord).reward,
    advantage: weighted(estimated[i] as number | number[], agents[turn.agent]?.rewardWeight ?? 1),
    ...(returns === undefined ? {} : { returns: returns[i] as number[] }),
  }));
  const ofTurn = new Map<Turn, number | readonly number[]>(turns.map(({ turn, advantage }) => [turn, advantage]));
  const advantages = new Map(episodes.map((episode) => [episode, episode.turns.map((turn) => ofTurn.get(turn))]));
  return { turns, episodes, advantages, records, inflation: predictedInflation(records, estimator) };
}

const weighted = (advantage: number | readonly number[], weight: number) =>
  typeof advantage === 'number' ? advantage * weight : advantage.map((a) => a * weight);

/** Every call is a step of its own; the episode's outcome arrives with the last that is learnt from. */
function turnRecord(episode: Episode, turn: Turn): TurnRecord {
  const outcome = turn === trainedTurns(episode).at(-1) ? episode.score.team : 0;
  return {
    task: episode.task.id,
    episode: episodeName(episode),
    agent: turn.agent,
    turn: turn.turn,
    reward: turnReward(episode, turn),
    outcome: episode.score.team,
    length: turn.response.length,
    observation: turn.observation ?? turn.messages.map(({ role, content }) => `${role}: ${content}`).join('\n'),
    stepReward: outcome + (turn.stepReward ?? 0) - turn.penalty,
  };
}

/** `task/sample`, as events name an episode. */
export function episodeName({ task, sample }: Episode): string {
  return `${task.id}/${sample}`;
}

/** The largest |advantage| of a turn. */
export function magnitude(advantage: number | readonly number[]): number {
  return typeof advantage === 'number'
    ? Math.abs(advantage)
    : advantage.reduce((most, a) => Math.max(most, Math.abs(a)), 0);
}
