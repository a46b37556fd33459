import { assertSameShape, type Row } from './aggregate.js';

/**
 * (value - mean) / sqrt(variance + 1e-8) with mean and variance (n - 1) over the tokens whose mask is 1; the others are moved and
 * scaled alike. With fewer than two such tokens the variance counts as 0.
 * @param values [rows][T]
 * @returns [rows][T]
 * @throws ArgumentError when shapes differ
 */
export function whiten(values: readonly Row[], mask: readonly Row[]): number[][] {
  assertSameShape({ values, mask });
  let count = 0;
  let sum = 0;
  forEachToken(values, mask, (value) => {
    count++;
    sum += value;
  });
  const mean = count === 0 ? 0 : sum / count;
  let squares = 0;
  forEachToken(values, mask, (value) => {
    squares += (value - mean) ** 2;
  });
  const scale = 1 / Math.sqrt((count < 2 ? 0 : squares / (count - 1)) + 1e-8);
  return values.map((row) => Array.from(row, (value) => (value - mean) * scale));
}

function forEachToken(values: readonly Row[], mask: readonly Row[], use: (value: number) => void): void {
  values.forEach((row, r) => {
    const maskRow = mask[r] as Row;
    for (let t = 0; t < row.length; t++) if (maskRow[t] !== 0) use(row[t] as number);
  });
}
