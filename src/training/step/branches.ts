/** Other ends of a step's episodes: each turn that is learnt from is played again in the context that it had. */
import { alternativesOf } from '../../advantage/estimators/index.js';
import { type Episode, type EpisodeGroup, type Turn, trainedTurns, turnReward } from '../../core/episode.js';
import { mean } from '../../core/statistics.js';
import type { Versions } from '../../rollout/rollout-context.js';
import type { OpenRun } from '../run-state.js';

/** An episode that was played again from a turn on. */
export interface Branched {
  /** The turn that it is an alternative to. */
  readonly of: Turn;
  readonly episode: Episode;
}

/**
 * Plays each turn of the groups again as often as the estimator wants, to the end of its episode; not at all where it
 * wants no alternatives. The turns before it answer as they did, which costs no token. Its context is exact because
 * random numbers follow from what is read: only code of a team that asks a changing world, such as a clock, sees
 * another one.
 */
export async function playBranches(
  { recipe, executor, host: { signal } }: Pick<OpenRun, 'recipe' | 'executor' | 'host'>,
  step: number,
  groups: readonly EpisodeGroup[],
  versions?: Versions,
): Promise<Branched[]> {
  const count = alternativesOf(recipe.advantage);
  const branches = groups.flatMap(({ task, episodes }) =>
    episodes.flatMap(({ sample, turns }) =>
      trainedTurns({ turns }).flatMap((of) => {
        const fixed = turns.filter(({ turn, judging }) => turn < of.turn && judging !== true);
        return Array.from({ length: count }, (_, n) => ({ task, of, sample, fixed, number: of.turn * count + n }));
      }),
    ),
  );
  if (branches.length === 0) return [];
  const tasks = branches.map(({ task }) => task);
  const played = await executor.playGroups({
    ...{ team: recipe.team, tasks, branches, groupSize: 1, phase: 'training', step, versions, signal },
  });
  return branches.map(({ of }, i) => ({ of, episode: played[i]?.episodes[0] as Episode }));
}

/**
 * The mean reward that each turn's alternatives earned, by the rule about failed episodes. A turn whose alternatives
 * all failed has nothing to be measured against but itself.
 */
export function branchBaselines(
  branches: readonly Branched[],
  groups: readonly EpisodeGroup[],
  failedEpisodes: 'exclude' | 'zero',
): ReadonlyMap<Turn, number> {
  const rewards = new Map<Turn, number[]>();
  for (const { of, episode } of branches) {
    const ofTurn = rewards.get(of) ?? [];
    rewards.set(of, ofTurn);
    const other = episode.turns.find(({ turn }) => turn === of.turn);
    if (episode.failure === undefined && other !== undefined) ofTurn.push(turnReward(episode, other));
    else if (failedEpisodes === 'zero') ofTurn.push(0);
  }
  const measured = groups.flatMap(({ episodes }) =>
    episodes.flatMap((episode) => episode.turns.map((turn) => [episode, turn] as const)),
  );
  return new Map(
    measured.flatMap(([episode, turn]) => {
      const ofTurn = rewards.get(turn);
      if (ofTurn === undefined) return [];
      return [[turn, ofTurn.length === 0 ? turnReward(episode, turn) : mean(ofTurn)] as const];
    }),
  );
}

/** The episodes with the turns that were played again alone, of which tokens were sampled. */
export function playedAgain(branches: readonly Branched[]): Episode[] {
  return branches.map(({ of, episode }) => ({
    ...episode,
    turns: episode.turns.filter(({ turn }) => turn >= of.turn),
  }));
}
