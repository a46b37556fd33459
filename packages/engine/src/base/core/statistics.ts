/** Small statistics. Sums run in order, in double precision. */
import { assertSameShape, ownValue } from './validation/objects.js';

/** The arithmetic mean; 0 for an empty list. */
export function mean(values: ArrayLike<number>): number {
  if (values.length === 0) return 0;
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i] as number;
  return sum / values.length;
}

/**
 * The mean of values that count as often as their weights say. Values that are undefined are left out; undefined if no
 * weight is left.
 */
export function weightedMean(pairs: readonly (readonly [value: number | undefined, weight: number])[]) {
  let [sum, total] = [0, 0];
  for (const [value, weight] of pairs) {
    if (value === undefined || weight === 0) continue;
    sum += weight * value;
    total += weight;
  }
  return total === 0 ? undefined : sum / total;
}

/** Whether two numbers differ by more than the rounding of sums in another order. */
export const differ = (a: number, b: number): boolean => Math.abs(a - b) > 1e-9 * Math.max(1, Math.abs(a), Math.abs(b));

/** The sample standard deviation, which divides by n - 1; 0 for fewer than two values. */
export function standardDeviation(values: ArrayLike<number>): number {
  if (values.length < 2) return 0;
  const centre = mean(values);
  let squares = 0;
  let areEqual = true; // their mean may differ from them by rounding
  for (let i = 0; i < values.length; i++) {
    squares += ((values[i] as number) - centre) ** 2;
    areEqual &&= values[i] === values[0];
  }
  if (areEqual) return 0;
  return Math.sqrt(squares / (values.length - 1));
}

/** The largest of any number of values: `Math.max(...values)` takes some 100,000 only. -Infinity without one. */
export function largest(values: readonly number[]): number {
  return values.reduce((most, value) => Math.max(most, value), Number.NEGATIVE_INFINITY);
}

/** The mean of every key over the records that have it; keys in the order of letters. */
export function meansByKey(records: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const keys = [...new Set(records.flatMap(Object.keys))].sort();
  return Object.fromEntries(keys.map((key) => [key, mean(records.flatMap((record) => ownValue(record, key) ?? []))]));
}

/** The values that are finite numbers: averages of gradient norms leave out steps whose norm is NaN or infinite. */
export function finite(values: readonly number[]): number[] {
  return values.filter(Number.isFinite);
}

/** The mean of the finite numbers; not a number if there are none, because nothing was measured. */
export function meanOfFinite(values: readonly number[]): number {
  const measured = finite(values);
  return measured.length === 0 ? Number.NaN : mean(measured);
}

/** The middle value, or the mean of the two middle ones; 0 for an empty list. */
export function median(values: ArrayLike<number>): number {
  const sorted = Float64Array.from(values).sort();
  const middle = sorted.length >> 1;
  if (sorted.length === 0) return 0;
  const upper = sorted[middle] as number;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] as number) + upper) / 2;
}

/**
 * (value - mean) / sqrt(variance + 1e-8) with mean and variance (n - 1) over the entries, each counted as often as its
 * weight says; entries of weight 0 are moved and scaled alike. With a total weight below two the variance counts as 0.
 * @param values [rows][T]
 * @param weights [rows][T], a mask, or the number of tokens that an entry counts for
 * @returns [rows][T]
 * @throws ArgumentError when shapes differ
 *
 * @example
 * ```ts
 * import { whiten } from 'drmas';
 *
 * whiten([[1, 3]], [[1, 1]]); // about [[-0.71, 0.71]]
 * ```
 */
export function whiten(values: readonly ArrayLike<number>[], weights: readonly ArrayLike<number>[]): number[][] {
  assertSameShape({ values, weights });
  let count = 0;
  let sum = 0;
  let first = 0;
  let areEqual = true;
  forEachEntry(values, weights, (value, weight) => {
    if (count === 0) first = value;
    areEqual &&= value === first;
    count += weight;
    sum += weight * value;
  });
  // The mean of equal values may differ from them by rounding, which the scale would turn into advantages.
  const mean = count === 0 ? 0 : areEqual ? first : sum / count;
  let squares = 0;
  forEachEntry(values, weights, (value, weight) => {
    squares += weight * (value - mean) ** 2;
  });
  const scale = 1 / Math.sqrt((count < 2 ? 0 : squares / (count - 1)) + 1e-8);
  return values.map((row) => Array.from(row, (value) => (value - mean) * scale));
}

function forEachEntry(
  values: readonly ArrayLike<number>[],
  weights: readonly ArrayLike<number>[],
  use: (value: number, weight: number) => void,
): void {
  values.forEach((row, r) => {
    const weightRow = weights[r] as ArrayLike<number>;
    for (let t = 0; t < row.length; t++) if (weightRow[t] !== 0) use(row[t] as number, weightRow[t] as number);
  });
}
