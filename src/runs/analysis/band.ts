/** Several runs of one variant as a line with a band. */
import { mean } from '../../base/math.js';

/** The mean, the minimum and the maximum over runs at a step. */
export interface BandPoint {
  readonly x: number;
  readonly y: number;
  readonly low: number;
  readonly high: number;
}

/** Mean, minimum and maximum at each step that all runs have. Runs without any point are ignored. */
export function bandOf(runs: readonly (readonly { readonly x: number; readonly y: number }[])[]): BandPoint[] {
  const begun = runs.filter((points) => points.length > 0);
  const [first, ...others] = begun.map((points) => new Map(points.map(({ x, y }) => [x, y])));
  if (first === undefined) return [];
  return [...first].flatMap(([x, y]) => {
    const values = [y, ...others.flatMap((points) => points.get(x) ?? [])];
    if (values.length < begun.length) return [];
    return [{ x, y: mean(values), low: Math.min(...values), high: Math.max(...values) }];
  });
}
