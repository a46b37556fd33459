/** Branches of a step's episodes: each turn that policies learn from is played again in its original context. */

import { mean } from '@drmas/engine/math';
import { agentReward, type Episode, type EpisodeGroup, type Turn, trainedTurns, turnReward } from '@drmas/engine/nouns';
import { type FailureRule, isMeasured } from '../../../teams/rollout.js';
import type { OpenEstimator } from '../../advantage/define-estimator.js';
import type { Playing } from '../run/run-state.js';
import type { PlayedGroups, Signal, SignalsByTurn } from '../run/signal.js';

/** An episode that was played again from one turn on. */
export interface Branched {
  /** The turn that it replaces. */
  readonly of: Turn;
  readonly episode: Episode;
  /** The turns of the episode that are no recorded ones. */
  readonly sampled: readonly Turn[];
  /** The turn in its place, with its prompt. Undefined if the episode did not come to it. */
  readonly other: Turn | undefined;
  /** Whether its place was reached again after the same turns, or the episode failed before it. */
  readonly inContext: boolean;
}

/** The mean reward of the alternatives to each turn. The estimator's choice `alternatives` sets their number. */
export const branches: Signal = {
  name: 'branches',
  field: 'baseline',
  async play(run, played) {
    const all = await playBranches(run, played, alternativesOf(run.estimator));
    const byTurn = branchBaselines(all, played.groups, run.training.failedEpisodes);
    const [first, ...others] = all.filter(({ inContext }) => !inContext);
    if (first === undefined) return { episodes: playedAgain(all), byTurn };
    const { task, sample } = first.episode;
    const fault = `${1 + others.length} of ${all.length} episodes that were played again, such as ${task.id}/${sample} from the turn of '${first.of.agent}' on, did not come to the same prompts, and are not compared: the team's code reads something that changes, such as a clock, a random number or a counter. Take it from \`task\` or \`random\``;
    return { episodes: playedAgain(all), byTurn, fault };
  },
  // At turn i of n, n - i turns remain to be played: (n + 1) / 2 on average.
  plan({ estimator, episodes, calls: { all, learnt } }) {
    const again = alternativesOf(estimator) * learnt;
    const whole = all === 0 ? 0 : (again * (all + 1)) / (2 * all);
    const note = `'${estimator.type}' plays each turn again from its context on: ${again.toFixed(1)} more episodes for each that is learnt from, with as many tokens as ${whole.toFixed(1)} whole ones`;
    return { episodes: episodes * again, whole: episodes * whole, ...(again > 0 && { note }) };
  },
  // A branch begins with recorded answers, which their random numbers identify. Servers have no such numbers.
  *checks({ estimator }, { endpoints: [endpoint] }) {
    yield {
      path: 'advantage.type',
      test: endpoint === undefined,
      message: `'${estimator.type}' plays turns again in their context, and the endpoint of ${endpoint?.agents.join(', ')} may answer otherwise: expected models that are held here`,
    };
  },
};

const alternativesOf = ({ choices }: OpenEstimator): number => Number(choices.alternatives ?? 1);

/**
 * Plays each turn of the groups again `alternatives` times, to the end of its episode. The earlier turns give their
 * recorded answers, which costs no tokens. The context is exact, because random numbers follow from the prompts. Team
 * code that depends on a changing world, such as a clock, may see a different one.
 */
export async function playBranches(
  { team, executor, host: { signal } }: Playing,
  { step, groups, versions }: PlayedGroups,
  alternatives: number,
): Promise<Branched[]> {
  const again = groups.flatMap(({ task, episodes }) =>
    episodes.flatMap(({ sample, turns }) =>
      trainedTurns({ turns }).flatMap((of) => {
        const fixed = turns.filter(({ turn, judging }) => turn < of.turn && judging !== true);
        return Array.from({ length: alternatives }, (_, n) => ({
          task,
          of,
          replay: { sample, fixed, number: of.turn * alternatives + n },
        }));
      }),
    ),
  );
  if (again.length === 0) return [];
  const [tasks, replays] = [again.map(({ task }) => task), again.map(({ replay }) => replay)];
  const played = await executor.playGroups({
    team,
    tasks,
    replays,
    groupSize: 1,
    phase: 'training',
    step,
    versions,
    signal,
  });
  return again.map(({ of, replay: { fixed } }, i) => {
    const episode = played[i]?.episodes[0] as Episode;
    const earlier = new Set(fixed.map(({ id }) => id));
    const sampled = episode.turns.filter(({ id }) => !earlier.has(id));
    // Calls side by side may come in another order, so that the turn has another number.
    const other = sampled.find(({ agent, prompt }) => agent === of.agent && isEqual(prompt, of.prompt));
    const isWhole = episode.turns.length - sampled.length === earlier.size;
    return { of, episode, sampled, other, inContext: other === undefined ? episode.failure !== undefined : isWhole };
  });
}

const isEqual = (ids: readonly number[], others: readonly number[]): boolean =>
  ids.length === others.length && ids.every((id, i) => id === others[i]);

/**
 * The mean reward of each turn's alternatives in its context, with the rule about failed episodes. If a turn has none,
 * its own reward is its baseline.
 */
function branchBaselines(
  all: readonly Branched[],
  groups: readonly EpisodeGroup[],
  failedEpisodes: FailureRule,
): SignalsByTurn {
  const rewards = new Map<Turn, number[]>();
  for (const { of, episode, other, inContext } of all) {
    const ofTurn = rewards.get(of) ?? [];
    rewards.set(of, ofTurn);
    if (!inContext || !isMeasured(episode, failedEpisodes)) continue;
    // A failed episode may end before the turn in its place. Then no turn has a penalty.
    if (other !== undefined) ofTurn.push(turnReward(episode, other));
    else if (episode.failure !== undefined) ofTurn.push(agentReward(episode, of.agent));
  }
  const measured = groups.flatMap(({ episodes }) =>
    episodes.flatMap((episode) => episode.turns.map((turn) => [episode, turn] as const)),
  );
  return new Map(
    measured.flatMap(([episode, turn]) => {
      const ofTurn = rewards.get(turn);
      if (ofTurn === undefined) return [];
      return [[turn, { baseline: ofTurn.length === 0 ? turnReward(episode, turn) : mean(ofTurn) }] as const];
    }),
  );
}

/** The episodes, each with only the turns that were played again. The others were not sampled. */
function playedAgain(all: readonly Branched[]): Episode[] {
  return all.map(({ episode, sampled }) => ({ ...episode, turns: sampled }));
}
