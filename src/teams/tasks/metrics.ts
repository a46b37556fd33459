/** The metrics of an evaluation: scores of k samples a task, and bootstrap intervals of their mean over tasks. */
import { ArgumentError, requireKnown } from '@drmas/engine/errors';
import { differ, mean, RandomStream } from '@drmas/engine/math';

/**
 * An unbiased estimate of the probability that at least one of k samples is right, from n samples with c right ones:
 * 1 - C(n - c, k) / C(n, k) (Chen et al. 2021, eq. 1).
 * @throws ArgumentError unless 1 <= k <= n and 0 <= c <= n are integers
 *
 * @example
 * ```ts
 * import { passAtK } from 'drmas';
 *
 * passAtK(4, 1, 2); // 0.5
 * ```
 */
export function passAtK(n: number, c: number, k: number): number {
  if (![n, c, k].every(Number.isInteger) || k < 1 || k > n || c < 0 || c > n) {
    throw new ArgumentError(`passAtK needs integers 1 <= k <= n and 0 <= c <= n, got n ${n}, c ${c}, k ${k}`);
  }
  if (n - c < k) return 1;
  let allWrong = 1;
  for (let i = n - c + 1; i <= n; i++) allWrong *= 1 - k / i;
  return 1 - allWrong;
}

/**
 * The unbiased estimate of the expected best of k samples from n scores: the mean, over all choices of k of the n
 * scores, of the largest; with s ascending, the sum over i of C(i - 1, k - 1) / C(n, k) s_(i). For scores of 0 and 1 it
 * is `passAtK`.
 * @throws ArgumentError unless 1 <= k <= n
 */
export function bestAtK(scores: readonly number[], k: number): number {
  const n = scores.length;
  if (!Number.isInteger(k) || k < 1 || k > n)
    throw new ArgumentError(`bestAtK needs an integer 1 <= k <= ${n}, the number of scores, got ${k}`);
  const ascending = [...scores].sort((a, b) => a - b);
  let weight = k / n; // of the largest: C(n - 1, k - 1) / C(n, k)
  let sum = 0;
  for (let i = n; i >= k; i--) {
    sum += weight * (ascending[i - 1] as number);
    weight *= (i - k) / (i - 1); // C(i - 2, k - 1) / C(i - 1, k - 1)
  }
  return sum;
}

/**
 * The mean score of a task's samples; for a list of tasks, the mean over tasks of that mean. 0 for an empty list.
 *
 * @example
 * ```ts
 * import { averageAtK } from 'drmas';
 *
 * averageAtK([[1, 0], [1, 1]]); // 0.75
 * ```
 */
export function averageAtK(scores: readonly number[] | readonly (readonly number[])[]): number {
  return mean(scores.map((score: number | readonly number[]) => (typeof score === 'number' ? score : mean(score))));
}

/**
 * 1 when the answer given most often is right, else 0. A tie goes to the answer seen first; a missing answer has no
 * vote.
 * @param same Whether two answers mean the same; by default equality of the trimmed texts
 *
 * @example
 * ```ts
 * import { majorityAtK } from 'drmas';
 *
 * majorityAtK(['7', '8', '7'], '7'); // 1
 * ```
 */
export function majorityAtK(
  predictions: readonly (string | null | undefined)[],
  reference: string,
  same: (prediction: string, other: string) => boolean = (a, b) => a.trim() === b.trim(),
): 0 | 1 {
  const candidates: { answer: string; votes: number }[] = [];
  for (const answer of predictions) {
    if (answer === null || answer === undefined) continue;
    const equal = candidates.find((candidate) => same(answer, candidate.answer));
    if (equal === undefined) candidates.push({ answer, votes: 1 });
    else equal.votes++;
  }
  const most = Math.max(...candidates.map(({ votes }) => votes));
  const winner = candidates.find(({ votes }) => votes === most);
  return winner !== undefined && same(winner.answer, reference) ? 1 : 0;
}

/** A mean over tasks and its bootstrap interval, in the unit of the scores. */
export interface BootstrapInterval {
  readonly mean: number;
  readonly low: number;
  readonly high: number;
}

/**
 * The percentile bootstrap interval of the mean over tasks (Efron 1979): tasks are drawn with replacement, percentiles
 * interpolate linearly. Samples of one task are not independent, so `perTask` has one number a task.
 * @param options.level Probability inside the interval, default 0.95
 * @param options.resamples Default 2000
 * @param options.seed The same seed gives the same interval; default 0
 * @throws ArgumentError when there is no task, a value is not a finite number, or an option is out of range
 *
 * @example
 * ```ts
 * import { bootstrapInterval } from 'drmas';
 *
 * const { mean, low, high } = bootstrapInterval([1, 0, 1, 1], { level: 0.95 });
 * ```
 */
export function bootstrapInterval(
  perTask: readonly number[],
  options: { readonly level?: number; readonly resamples?: number; readonly seed?: number } = {},
): BootstrapInterval {
  requireKnown<typeof options>(options, { level: true, resamples: true, seed: true });
  const { level = 0.95, resamples = 2000, seed = 0 } = options;
  const n = perTask.length;
  if (n === 0 || !perTask.every(Number.isFinite)) {
    throw new ArgumentError('bootstrapInterval needs at least one task and a finite number for each');
  }
  if (!(level > 0 && level < 1)) throw new ArgumentError(`level must lie between 0 and 1, got ${level}`);
  if (!Number.isInteger(resamples) || resamples < 1) {
    throw new ArgumentError(`resamples must be a positive integer, got ${resamples}`);
  }
  const random = new RandomStream('bootstrap', seed);
  const values = Float64Array.from(perTask);
  const means = new Float64Array(resamples);
  for (let r = 0; r < resamples; r++) {
    let sum = 0;
    for (let i = 0; i < n; i++) sum += values[Math.floor(random.word() * 2 ** -32 * n)] as number;
    means[r] = sum / n;
  }
  means.sort();
  const tail = (1 - level) / 2;
  return { mean: mean(perTask), low: quantile(means, tail), high: quantile(means, 1 - tail) };
}

/**
 * The interval of a mean over tasks of scores from 0 to 1: the bootstrap's. If all tasks score the same, all resamples
 * do too, and their interval would have no width; then it is the exact one: at most such a share of all tasks scores
 * otherwise that these tasks are drawn with a probability of (1 - level) / 2 (Clopper and Pearson 1934).
 * @throws ArgumentError as `bootstrapInterval` does
 */
export function scoreInterval(
  perTask: readonly number[],
  options: { readonly level: number; readonly resamples?: number; readonly seed?: number },
): BootstrapInterval {
  const interval = bootstrapInterval(perTask, options);
  const [score] = perTask as readonly [number];
  if (perTask.some((other) => differ(other, score))) return interval;
  const others = 1 - ((1 - options.level) / 2) ** (1 / perTask.length);
  return { mean: interval.mean, low: score - others * score, high: score + others * (1 - score) };
}

function quantile(sorted: Float64Array, q: number): number {
  const position = q * (sorted.length - 1);
  const below = Math.floor(position);
  const low = sorted[below] as number;
  const high = sorted[Math.min(below + 1, sorted.length - 1)] as number;
  return low + (position - below) * (high - low);
}
