/** Scales: from values to positions in a drawing. */

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface Scale {
  /** The position of a value in [0, 1], 0 at the low end. */
  place(value: number): number;
  readonly ticks: readonly number[];
}

/** The ratio of the largest to the smallest value from which a chart uses a logarithmic scale, where it allows one. */
const WIDE = 200;

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

/** A logarithmic scale with the powers of ten around the positive values. */
function logScale(low: number, high: number): Scale {
  const first = Math.floor(Math.log10(low));
  const last = Math.max(first + 1, Math.ceil(Math.log10(high)));
  const every = Math.ceil((last - first) / 5);
  const ticks = Array.from({ length: Math.floor((last - first) / every) + 1 }, (_, i) => 10 ** (first + i * every));
  return { place: (value) => Math.max(0, (Math.log10(Math.max(value, 10 ** first)) - first) / (last - first)), ticks };
}

/**
 * The scale of a chart, which holds all values.
 * @param options.include Values that the scale must include, such as 0
 * @param options.logarithmic Whether the scale may be logarithmic when positive values are orders of magnitude apart
 */
export function scaleFor(
  values: readonly number[],
  options: { readonly include?: readonly number[]; readonly logarithmic?: boolean } = {},
): Scale {
  const positive = values.filter((value) => value > 0);
  const [least, most] = [smallest(positive), largest(positive)];
  if (options.logarithmic === true && positive.length > 1 && most / least > WIDE) return logScale(least, most);
  const all = [...values, ...(options.include ?? [])];
  return all.length === 0 ? linearScale(0, 1) : linearScale(smallest(all), largest(all));
}

const smallest = (values: readonly number[]) => values.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
const largest = (values: readonly number[]) => values.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);

/**
 * Thins points to about `most`: the lowest and the highest of each stretch, in order of x, so that no spike is lost.
 */
export function thin(points: readonly Point[], most = 400): readonly Point[] {
  if (points.length <= most) return points;
  const stretch = (2 * points.length) / most;
  const kept: Point[] = [];
  for (let start = 0; start < points.length; start += stretch) {
    const part = points.slice(Math.floor(start), Math.floor(start + stretch));
    const low = part.reduce((a, b) => (b.y < a.y ? b : a));
    const high = part.reduce((a, b) => (b.y > a.y ? b : a));
    kept.push(...(low.x <= high.x ? [low, high] : [high, low]).slice(0, low === high ? 1 : 2));
  }
  return kept;
}
