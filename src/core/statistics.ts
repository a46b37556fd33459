/** Small statistics. Sums run in order, in double precision. */

/** The arithmetic mean; 0 for an empty list. */
export function mean(values: ArrayLike<number>): number {
  if (values.length === 0) return 0;
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i] as number;
  return sum / values.length;
}

/** The sample standard deviation, which divides by n - 1; 0 for fewer than two values. */
export function standardDeviation(values: ArrayLike<number>): number {
  if (values.length < 2) return 0;
  const centre = mean(values);
  let squares = 0;
  for (let i = 0; i < values.length; i++) squares += ((values[i] as number) - centre) ** 2;
  return Math.sqrt(squares / (values.length - 1));
}

/** The mean of every key over the records that have it; keys in the order of letters. */
export function meansByKey(records: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const keys = [...new Set(records.flatMap(Object.keys))].sort();
  return Object.fromEntries(keys.map((key) => [key, mean(records.flatMap((record) => record[key] ?? []))]));
}

/** The values that are finite numbers: averages of gradient norms leave out steps whose norm is NaN or infinite. */
export function finite(values: readonly number[]): number[] {
  return values.filter(Number.isFinite);
}

/** The middle value, or the mean of the two middle ones; 0 for an empty list. */
export function median(values: ArrayLike<number>): number {
  const sorted = Float64Array.from(values).sort();
  const middle = sorted.length >> 1;
  if (sorted.length === 0) return 0;
  const upper = sorted[middle] as number;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] as number) + upper) / 2;
}
