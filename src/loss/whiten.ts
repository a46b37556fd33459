import { assertSameShape, type Row } from './aggregate.js';

/**
 * (value - mean) / sqrt(variance + 1e-8) with mean and variance (n - 1) over the entries, each counted as often as its
 * weight says; entries of weight 0 are moved and scaled alike. With a total weight below two the variance counts as 0.
 * @param values [rows][T]
 * @param weights [rows][T], a mask or, where an entry stands for many tokens, their number
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
export function whiten(values: readonly Row[], weights: readonly Row[]): number[][] {
  assertSameShape({ values, weights });
  let count = 0;
  let sum = 0;
  forEachEntry(values, weights, (value, weight) => {
    count += weight;
    sum += weight * value;
  });
  const mean = count === 0 ? 0 : sum / count;
  let squares = 0;
  forEachEntry(values, weights, (value, weight) => {
    squares += weight * (value - mean) ** 2;
  });
  const scale = 1 / Math.sqrt((count < 2 ? 0 : squares / (count - 1)) + 1e-8);
  return values.map((row) => Array.from(row, (value) => (value - mean) * scale));
}

function forEachEntry(
  values: readonly Row[],
  weights: readonly Row[],
  use: (value: number, weight: number) => void,
): void {
  values.forEach((row, r) => {
    const weightRow = weights[r] as Row;
    for (let t = 0; t < row.length; t++) if (weightRow[t] !== 0) use(row[t] as number, weightRow[t] as number);
  });
}
