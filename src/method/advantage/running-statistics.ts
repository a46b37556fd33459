/** Statistics that are kept from step to step, so that a group of one has something to be compared with. */
import { type Groups, statisticsOf } from './groups.js';

/** The share of the old running mean in the new one, unless an estimator sets another. */
export const DEFAULT_DECAY = 0.9;

/** By name: the running mean of the values, and of their squares. Empty before the first step. */
export type RunningStatistics = Readonly<Record<string, number>>;

interface Members {
  readonly values: Float64Array;
  readonly wider: Groups;
  readonly names?: readonly string[];
}

/**
 * The statistics of each wider group before this step. A new group gets the statistics of this step. Sizes are 0, so
 * never 1.
 */
export function runningStatistics({ values, wider, names = [] }: Members, state: RunningStatistics) {
  const step = momentsOf({ values, wider });
  const running = (name: string, ofStep: Float64Array) =>
    ofStep.map((value, g) => state[`${names[g]} ${name}`] ?? value);
  const mean = running('mean', step.mean);
  const square = running('square', step.square);
  const spread = mean.map((m, g) => Math.sqrt(Math.max(0, (square[g] as number) - m ** 2)));
  return { size: new Float64Array(wider.count), mean, spread };
}

/** The running statistics after a step. */
export function advanceStatistics({ values, wider, names = [] }: Members, state: RunningStatistics): RunningStatistics {
  const moments = momentsOf({ values, wider });
  const moved = names.flatMap((name, g) =>
    (['mean', 'square'] as const).map((moment) => {
      const key = `${name} ${moment}`;
      const value = moments[moment][g] as number;
      return [key, DEFAULT_DECAY * (state[key] ?? value) + (1 - DEFAULT_DECAY) * value] as const;
    }),
  );
  return { ...state, ...Object.fromEntries(moved) };
}

function momentsOf({ values, wider }: Pick<Members, 'values' | 'wider'>) {
  const meanOf = (numbers: Float64Array) => statisticsOf(wider, numbers).mean;
  return { mean: meanOf(values), square: meanOf(values.map((value) => value ** 2)) };
}
