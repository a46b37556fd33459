/** The data of charts: lines over steps; each line may have different steps. */

export interface Line {
  readonly name: string;
  /** The number of its colour and dashes. */
  readonly colour: number;
  readonly points: readonly ChartPoint[];
  /** Steps at which something is to be marked by a ring. */
  readonly marks?: readonly number[];
  /** Draws dots if there are few points. */
  readonly dots?: boolean;
}

/** A value at a step, with the ends of its interval or band, if any. */
export interface ChartPoint {
  readonly x: number;
  readonly y: number;
  readonly low?: number;
  readonly high?: number;
}

/** The points of steps and values; values that are no finite numbers are left out. */
export function pointsOf(steps: readonly number[], values: readonly number[]): ChartPoint[] {
  return values.flatMap((y, i) => (Number.isFinite(y) ? [{ x: steps[i] ?? 0, y }] : []));
}

/** One value of events as a line over their steps; the line has no point at a step without the value. */
export function lineOver<Event extends { readonly step: number }>(
  events: readonly Event[],
  name: string,
  colour: number,
  of: (event: Event) => number | undefined,
): Line {
  const steps = events.map(({ step }) => step);
  return {
    name,
    colour,
    points: pointsOf(
      steps,
      events.map((event) => of(event) ?? Number.NaN),
    ),
  };
}

/** Lines over the union of their steps: a list of x, then each line's values, with null for a missing value. */
export function alignedData(lines: readonly Line[]): { xs: number[]; rows: (number | null)[][] } {
  const xs = [...new Set(lines.flatMap(({ points }) => points.map(({ x }) => x)))].sort((a, b) => a - b);
  const position = new Map(xs.map((x, i) => [x, i]));
  const rows = lines.map(({ points }) => {
    const row = new Array<number | null>(xs.length).fill(null);
    for (const { x, y } of points) row[position.get(x) ?? 0] = y;
    return row;
  });
  return { xs, rows };
}

/** The ratio of the largest to the smallest value from which an axis becomes logarithmic, if that is allowed. */
const WIDE = 200;

export function extentOf(lines: readonly Line[], include: readonly number[], mayBeLogarithmic: boolean) {
  const values = lines.flatMap(({ points }) => points.flatMap(({ y, low = y, high = y }) => [y, low, high]));
  const positive = values.filter((value) => value > 0);
  const least = positive.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
  const most = positive.reduce((a, b) => Math.max(a, b), 0);
  // Norms of 1e-12 are zero in effect, so four powers of ten below nearly all values are enough. A spike is above them.
  const floor = () =>
    Math.max(least, (positive.toSorted((a, b) => a - b).at(-1 - Math.floor(positive.length / 10)) ?? 0) / 1e4);
  if (mayBeLogarithmic && most / least > WIDE) return { low: floor(), high: most, logarithmic: true };
  const all = [...values, ...include];
  const low = all.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
  const high = all.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  return all.length === 0 ? { low: 0, high: 1, logarithmic: false } : { low, high, logarithmic: false };
}
