/** Scales: from values to positions in a drawing. */

export interface Scale {
  /** The position of a value in [0, 1], 0 at the low end. */
  place(value: number): number;
  readonly ticks: readonly number[];
}

/** A linear scale with about `count` round numbers around [low, high], the ends included. */
export function linearScale(low: number, high: number, count = 4): Scale {
  const range = high - low || Math.abs(high) || 1;
  const rough = range / count;
  const magnitude = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((factor) => factor * magnitude >= rough * 0.999) ?? 10) * magnitude;
  const first = Math.floor(low / step + 1e-9);
  const last = Math.max(first + 1, Math.ceil(high / step - 1e-9));
  const ticks = Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
  const [from, to] = [first * step, last * step];
  return { place: (value) => (value - from) / (to - from), ticks };
}

/** The scale of a figure, which holds all values. */
export function scaleFor(values: readonly number[]): Scale {
  return values.length === 0 ? linearScale(0, 1) : linearScale(smallest(values), largest(values));
}

const smallest = (values: readonly number[]) => values.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
const largest = (values: readonly number[]) => values.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
