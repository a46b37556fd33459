/** Fits the speed of a sampler to timed plays. */
import { type MachineSpeed, type ScheduledEpisode, type SimulatedRun, simulateSchedule } from './schedule.js';

/** Episodes that were played together, with the time that they took. */
export interface TimedPlay {
  readonly episodes: readonly ScheduledEpisode[];
  /** The most concurrent episodes. */
  readonly atOnce: number;
  readonly seconds: number;
}

type SamplingSpeed = Omit<MachineSpeed['sampling'], 'engines'>;

/** The number of rounds. Each round simulates the plays with the previous round's result. */
const ROUNDS = 40;

/**
 * Fits the seconds of an iteration, of a sequence in it and of a prompt token, so that the simulation of each play
 * takes as long as the play took: least squares of the relative errors, without negative numbers.
 */
export function fitSampling(plays: readonly TimedPlay[]): SamplingSpeed {
  const tokens = plays.map(({ episodes }) => {
    const calls = episodes.flatMap((episode) => episode.calls);
    const total = (of: (call: (typeof calls)[number]) => number) => calls.reduce((sum, call) => sum + of(call), 0);
    return { read: total((call) => call.promptTokens), written: total((call) => call.responseTokens) };
  });
  const all = plays.reduce((sum, { seconds }) => sum + seconds, 0);
  const written = tokens.reduce((sum, one) => sum + one.written, 0);
  let speed: SamplingSpeed = {
    iterationSeconds: all / Math.max(1, written),
    sequenceSeconds: 0,
    promptTokenSeconds: 0,
  };
  for (let round = 0; round < ROUNDS; round++) {
    const rows = plays.map((play, i) => {
      const { waiting, iterations } = playAlone(play, speed);
      const { read = 0, written = 0 } = tokens[i] ?? {};
      return { features: [iterations, written, read] as const, seconds: Math.max(0, play.seconds - waiting) };
    });
    const [iterationSeconds, sequenceSeconds, promptTokenSeconds] = leastSquares(
      rows.map(({ features, seconds }, i) => {
        const weight = 1 / Math.max(1e-9, plays[i]?.seconds ?? 1);
        return { features: features.map((x) => x * weight) as unknown as Three, target: seconds * weight };
      }),
    );
    // The number of iterations depends on the speed, so each round moves only half of the way.
    const average = (before: number, after: number) => (before + after) / 2;
    speed = {
      iterationSeconds: average(speed.iterationSeconds, iterationSeconds),
      sequenceSeconds: average(speed.sequenceSeconds, sequenceSeconds),
      promptTokenSeconds: average(speed.promptTokenSeconds, promptTokenSeconds),
    };
  }
  return speed;
}

/** Simulates a play without learning from it. */
export function playAlone(
  { episodes, atOnce }: Pick<TimedPlay, 'episodes' | 'atOnce'>,
  sampling: SamplingSpeed & { readonly engines?: number },
): SimulatedRun {
  return simulateSchedule(
    { steps: [episodes], atOnce, staleness: 0, checkpointEvery: 1, epochs: 0 },
    {
      sampling: { engines: 1, ...sampling },
      training: { tokenSeconds: 0, updateSeconds: 0 },
      transferSeconds: 0,
      shared: true,
    },
  );
}

type Three = readonly [number, number, number];

interface LinearEquation {
  readonly features: Three;
  readonly target: number;
}

/** Least squares with three non-negative numbers: the best of all solutions in which some of them are 0. */
function leastSquares(rows: readonly LinearEquation[]): Three {
  let best: { error: number; solution: Three } = { error: Number.POSITIVE_INFINITY, solution: [0, 0, 0] };
  for (let subset = 1; subset < 8; subset++) {
    const chosen = [0, 1, 2].filter((i) => subset & (1 << i));
    const subsolution = solve(
      chosen.map((i) => chosen.map((j) => rows.reduce((sum, { features: f }) => sum + at(f, i) * at(f, j), 0))),
      chosen.map((i) => rows.reduce((sum, { features: f, target }) => sum + at(f, i) * target, 0)),
    );
    if (subsolution === undefined || subsolution.some((value) => value < 0)) continue;
    const solution = [0, 1, 2].map((i) => subsolution[chosen.indexOf(i)] ?? 0) as unknown as Three;
    const error = rows.reduce(
      (sum, { features, target }) => sum + (target - features.reduce((all, x, i) => all + x * at(solution, i), 0)) ** 2,
      0,
    );
    if (error < best.error * (1 - 1e-12)) best = { error, solution };
  }
  return best.solution;
}

const at = (values: readonly number[], i: number): number => values[i] ?? 0;

/** Gauss-Jordan with the largest pivot; undefined if the equations do not determine the answer. */
function solve(matrix: readonly (readonly number[])[], right: readonly number[]): number[] | undefined {
  const rows = matrix.map((row, i) => [...row, at(right, i)]);
  const scale = Math.max(...rows.map((row, i) => Math.abs(at(row, i))));
  for (let column = 0; column < rows.length; column++) {
    const size = (row: number) => Math.abs(at(rows[row] ?? [], column));
    let pivot = column;
    for (let row = column; row < rows.length; row++) if (size(row) > size(pivot)) pivot = row;
    if (size(pivot) <= 1e-12 * scale) return undefined;
    const [upper, lower] = [rows[column] as number[], rows[pivot] as number[]];
    [rows[column], rows[pivot]] = [lower, upper];
    for (let row = 0; row < rows.length; row++) {
      if (row === column) continue;
      const factor = at(rows[row] ?? [], column) / at(lower, column);
      rows[row] = (rows[row] ?? []).map((value, i) => value - factor * at(lower, i));
    }
  }
  return rows.map((row, i) => at(row, rows.length) / at(row, i));
}
