/**
 * Variants of an ablation as points whose axes are named parts of the reward, with the Pareto front and its
 * hypervolume.
 */
import { labelOfPart } from '@drmas/engine/nouns';
import type { VariantSummary } from '../ablation-summary.js';

/** A variant and its means of the named parts of the reward. More is better in each part. */
export interface ParetoPoint {
  readonly variant: string;
  /** In the order of the parts. */
  readonly values: readonly number[];
  /** Whether no other variant is at least as good in each part and better in one. */
  readonly front: boolean;
}

/** The scores of the variants of an ablation in each part of the reward, and the front among them. */
export interface ParetoPicture {
  readonly parts: readonly string[];
  readonly points: readonly ParetoPoint[];
  /**
   * The volume that the variants dominate together, above the worst value of each part and in units of each part's
   * range. It is 1 if one variant is the best in all parts. Absent if a part is equal for all variants.
   */
  readonly hypervolume?: number;
}

/** The picture of the variants with completed runs. Undefined if fewer than two variants have all of these parts. */
export function paretoPicture(
  variants: readonly VariantSummary[],
  parts: readonly string[],
): ParetoPicture | undefined {
  const points = variants.flatMap(({ variant, runs, rewards }) => {
    const values = parts.flatMap((part) => rewards[labelOfPart(part)] ?? []);
    return runs === 0 || values.length < parts.length ? [] : [{ variant, values }];
  });
  if (points.length < 2) return undefined;
  const marked = points.map((point) => ({ ...point, front: !points.some((other) => dominates(other, point)) }));
  const worst = parts.map((_, i) => Math.min(...points.map(({ values }) => values[i] as number)));
  const ranges = parts.map(
    (_, i) => Math.max(...points.map(({ values }) => values[i] as number)) - (worst[i] as number),
  );
  const picture = { parts, points: marked };
  if (ranges.some((range) => range === 0)) return picture;
  const scaled = points.map(({ values }) =>
    values.map((value, i) => (value - (worst[i] as number)) / (ranges[i] as number)),
  );
  return { ...picture, hypervolume: hypervolume(scaled) };
}

type Values = Pick<ParetoPoint, 'values'>;

const dominates = ({ values: a }: Values, { values: b }: Values): boolean =>
  a.every((value, i) => value >= (b[i] as number)) && a.some((value, i) => value > (b[i] as number));

/**
 * The volume between 0 and at least one of the points, in any number of dimensions. It is computed in slices along the
 * last dimension: each slice is the volume of the points that reach it (Zitzler and Thiele 1998 name the measure).
 */
export function hypervolume(points: readonly (readonly number[])[]): number {
  const [first] = points;
  if (first === undefined) return 0;
  if (first.length === 1) return Math.max(0, ...points.map(([value = 0]) => value));
  const last = first.length - 1;
  const heights = [...new Set(points.map((point) => point[last] as number))].filter((height) => height > 0);
  heights.sort((a, b) => a - b);
  return heights.reduce((volume, height, i) => {
    const reaching = points.filter((point) => (point[last] as number) >= height).map((point) => point.slice(0, last));
    return volume + (height - (heights[i - 1] ?? 0)) * hypervolume(reaching);
  }, 0);
}
