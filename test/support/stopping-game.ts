/**
 * A small game in which the policy decides when to stop, and the exact bias of estimators in it. Going on and stopping
 * have the same value, so the right gradient of each decision is 0: an expected advantage that differs is bias.
 */

import { RandomStream } from '@drmas/engine/math';
import type { TurnRecord } from '@drmas/engine/nouns';
import type { OpenEstimator } from '../../src/method/advantage/define-estimator.js';
import { TurnBatch } from '../../src/method/advantage/turn-batch.js';

/** An agent takes 1 to `most` turns; after each but the last it goes on with the probability `going`. */
export interface StoppingGame {
  readonly most: number;
  readonly going: number;
  /** The probability that the episode succeeds and earns 1, whatever the agent does. */
  readonly success: number;
  /** The own reward of each turn after the first. The episode's reward is less by as much: the return is luck alone. */
  readonly earned: number;
}

/** A way in which an episode can go: the number of its turns, and its luck. */
interface Course {
  readonly turns: number;
  readonly luck: number;
  readonly probability: number;
}

/** The probability that an episode takes exactly so many turns. */
const lengthProbability = ({ most, going }: StoppingGame, turns: number): number =>
  going ** (turns - 1) * (turns === most ? 1 : 1 - going);

const coursesOf = (game: StoppingGame): Course[] =>
  Array.from({ length: game.most }, (_, i) => i + 1).flatMap((turns) =>
    [game.success, 1 - game.success].map((chance, i) => ({
      turns,
      luck: 1 - i,
      probability: lengthProbability(game, turns) * chance,
    })),
  );

/** The turns of an episode as a run gives them to an estimator. */
function recordsOf({ earned }: StoppingGame, { turns, luck }: Course, episode: number): TurnRecord[] {
  const outcome = luck - earned * (turns - 1);
  return Array.from({ length: turns }, (_, turn) => {
    const own = turn === 0 ? 0 : earned;
    const stepReward = own + (turn === turns - 1 ? outcome : 0);
    return {
      task: 't',
      episode: `${episode}`,
      agent: 'a',
      turn,
      reward: outcome + own,
      outcome,
      length: 1,
      observation: `${turn}`,
      chain: 0,
      envStep: turn,
      stepReward,
      agentStepReward: stepReward,
    };
  });
}

/** A group of episodes that are drawn by chance. Equal numbers give equal episodes. */
export function drawEpisodes(game: StoppingGame, size: number, group: number): TurnRecord[] {
  const random = new RandomStream('stopping', group);
  return Array.from({ length: size }, (_, episode) => {
    let turns = 1;
    while (turns < game.most && random.chance(game.going)) turns++;
    return recordsOf(game, { turns, luck: random.chance(game.success) ? 1 : 0, probability: 1 }, episode);
  }).flat();
}

/** The mean over episodes of a number of each turn, for each turn that episodes come to. */
function meansByTurn(game: StoppingGame, of: (records: readonly TurnRecord[]) => readonly number[]): number[] {
  const sums = new Array<number>(game.most).fill(0);
  for (const course of coursesOf(game))
    of(recordsOf(game, course, 0)).forEach((value, turn) => {
      sums[turn] = (sums[turn] as number) + course.probability * value;
    });
  return sums.map((sum, turn) => sum / game.going ** turn);
}

/** The signals of a run, without error: replays from each turn on, and a critic that has learnt its targets. */
function signalsOf(game: StoppingGame, estimator: OpenEstimator): (record: TurnRecord) => Partial<TurnRecord> {
  const baselines = meansByTurn(game, (records) => records.map(({ reward }) => reward));
  const blank = (records: readonly TurnRecord[]) => records.map((record) => ({ ...record, values: [0] }));
  const targets = meansByTurn(game, (records) =>
    (estimator.returns(new TurnBatch(blank(records))) ?? []).map((row) => row[0] as number),
  );
  return ({ turn }) => ({ baseline: baselines[turn] as number, values: [targets[turn] as number] });
}

/** Calls `visit` with each multiset of `size` courses and its probability. */
function forEachGroup(
  courses: readonly Course[],
  size: number,
  visit: (group: readonly Course[], probability: number) => void,
): void {
  const from = (kind: number, group: readonly Course[], probability: number): void => {
    if (group.length === size) {
      visit(group, probability);
      return;
    }
    const course = courses[kind];
    if (course === undefined) return;
    // The multinomial coefficient, one kind after the other: `left` places, of which `count` are of this kind.
    const left = size - group.length;
    for (let count = 0, ways = 1; count <= left; count++) {
      from(
        kind + 1,
        [...group, ...new Array<Course>(count).fill(course)],
        probability * ways * course.probability ** count,
      );
      ways = (ways * (left - count)) / (count + 1);
    }
  };
  from(0, [], 1);
}

/**
 * The hidden bonus of an estimator for going on after each turn: its expected advantage if the agent goes on, minus the
 * expected advantage if it stops, over groups of `size` episodes. Exact by enumeration; 0 is right.
 * @returns One number for each decision // [most - 1]
 */
export function hiddenBonus(game: StoppingGame, estimator: OpenEstimator, size: number): number[] {
  const decisions = game.most - 1;
  const signals = signalsOf(game, estimator);
  const [going, stopping] = [new Float64Array(decisions), new Float64Array(decisions)];
  const courses = coursesOf(game);
  // The turns of each course as each episode of a group.
  const known = new Map(
    courses.map((course) => [
      course,
      Array.from({ length: size }, (_, episode) =>
        recordsOf(game, course, episode).map((record) => ({ ...record, ...signals(record) })),
      ),
    ]),
  );
  forEachGroup(courses, size, (group, probability) => {
    const records = group.flatMap((course, episode) => known.get(course)?.[episode] as TurnRecord[]);
    const advantages = estimator.compute(new TurnBatch(records));
    let row = 0;
    for (const { turns } of group)
      for (let turn = 0; turn < turns; turn++, row++) {
        if (turn >= decisions) continue;
        const given = advantages[row] as number | number[];
        const advantage = typeof given === 'number' ? given : (given[0] as number);
        const sums = turn < turns - 1 ? going : stopping;
        sums[turn] = (sums[turn] as number) + (probability * advantage) / size;
      }
  });
  // Divided by the probability that an episode comes to the decision and decides so.
  return Array.from(going, (sum, turn) => {
    const reaching = game.going ** turn;
    return sum / (reaching * game.going) - (stopping[turn] as number) / (reaching * (1 - game.going));
  });
}
