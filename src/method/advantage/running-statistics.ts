/** Statistics that are kept from step to step, so that a group of one has something to be compared with. */
import { type Groups, statisticsOf } from './groups.js';

/** The share of the old running mean in the new one, unless an estimator sets another. */
export const DEFAULT_DECAY = 0.9;

/** By name: the running mean and variance of the values. Empty before the first step. */
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
  const mean = step.mean.map((value, g) => runningOf(state, names[g]).mean ?? value);
  const spread = step.variance.map((value, g) => Math.sqrt(runningOf(state, names[g]).variance ?? value));
  return { size: new Float64Array(wider.count), mean, spread };
}

/** Of one group. Checkpoints of earlier versions have the mean of squares, which loses variances of large values. */
function runningOf(state: RunningStatistics, name: string | undefined) {
  const [mean, square] = [state[`${name} mean`], state[`${name} square`]];
  const before = mean === undefined || square === undefined ? undefined : Math.max(0, square - mean ** 2);
  return { mean, variance: state[`${name} variance`] ?? before };
}

/**
 * The running statistics after a step. A mean that moves adds to the variance. A group without a value in the step
 * keeps its statistics: a filter may have kept no turn.
 */
export function advanceStatistics({ values, wider, names = [] }: Members, state: RunningStatistics): RunningStatistics {
  const moments = momentsOf({ values, wider });
  const moved = names.flatMap((name, g) => {
    if ((moments.size[g] ?? 0) === 0) return [];
    const [mean, variance] = [moments.mean[g] as number, moments.variance[g] as number];
    const { mean: old = mean, variance: spread = variance } = runningOf(state, name);
    const [kept, fresh] = [DEFAULT_DECAY, 1 - DEFAULT_DECAY];
    return [
      [`${name} mean`, kept * old + fresh * mean],
      [`${name} variance`, kept * spread + fresh * variance + kept * fresh * (mean - old) ** 2],
    ] as const;
  });
  const squares = new Set(names.map((name) => `${name} square`));
  const rest = Object.entries(state).filter(([key]) => !squares.has(key));
  return { ...Object.fromEntries(rest), ...Object.fromEntries(moved) };
}

function momentsOf({ values, wider }: Pick<Members, 'values' | 'wider'>) {
  const { size, mean } = statisticsOf(wider, values);
  const squares = values.map((value, i) => (value - (mean[wider.of[i] as number] as number)) ** 2);
  return { size, mean, variance: statisticsOf(wider, squares).mean };
}
