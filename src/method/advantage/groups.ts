/** Members 0..n-1 sorted into groups 0..count-1, numbered by first appearance. */
export interface Groups {
  readonly of: Int32Array; // [members]
  readonly count: number;
}

/** Groups members by a key. Linear in the number of members. */
export function groupBy(size: number, key: (member: number) => string | number): Groups {
  const of = new Int32Array(size);
  const ids = new Map<string | number, number>();
  let last: string | number | undefined;
  for (let i = 0; i < size; i++) {
    const name = key(i);
    // Members of one group are usually neighbours, which saves the lookup of their key.
    if (i > 0 && name === last) {
      of[i] = of[i - 1] as number;
      continue;
    }
    of[i] = ids.get(name) ?? ids.size;
    if (of[i] === ids.size) ids.set(name, ids.size);
    last = name;
  }
  return { of, count: ids.size };
}

/** The groups of members that share both their groups. Linear in the number of members. */
export function within(outer: Groups, inner: Groups): Groups {
  const of = new Int32Array(outer.of.length);
  const cells = outer.count * inner.count;
  // A table if it is not much larger than the list of members. Mostly, names repeat from one outer group to the next.
  const table = cells <= 4 * of.length ? new Int32Array(cells).fill(-1) : undefined;
  const ids = new Map<number, number>();
  let count = 0;
  for (let i = 0; i < of.length; i++) {
    const cell = (outer.of[i] as number) * inner.count + (inner.of[i] as number);
    const earlier = table === undefined ? ids.get(cell) : (table[cell] as number);
    const id = earlier === undefined || earlier < 0 ? count++ : earlier;
    of[i] = id;
    if (id === earlier) continue;
    if (table === undefined) ids.set(cell, id);
    else table[cell] = id;
  }
  return { of, count };
}

/** The `outer` group that the first member of each group belongs to. */
export function parentsOf(groups: Groups, outer: Groups): Groups {
  const of = new Int32Array(groups.count);
  for (let i = groups.of.length - 1; i >= 0; i--) of[groups.of[i] as number] = outer.of[i] as number;
  return { of, count: outer.count };
}

/** One entry a group. */
export interface GroupStatistics {
  readonly size: Float64Array;
  readonly mean: Float64Array;
  /** Standard deviation; 0 for a group of one. */
  readonly spread: Float64Array;
}

/**
 * Mean and spread of each group. Equal values have their value as the mean and no spread: the rounding of a sum of
 * large values would be a spread to divide by.
 * @param divisor The divisor of the spread's sum of squares: n - 1 (a sample) or n (a whole population)
 */
export function statisticsOf(groups: Groups, values: Float64Array, divisor: 'n - 1' | 'n' = 'n - 1'): GroupStatistics {
  const size = new Float64Array(groups.count);
  const mean = new Float64Array(groups.count);
  const spread = new Float64Array(groups.count);
  const first = new Float64Array(groups.count);
  const differs = new Uint8Array(groups.count);
  for (let i = 0; i < values.length; i++) {
    const g = groups.of[i] as number;
    if (size[g] === 0) first[g] = values[i] as number;
    size[g] = (size[g] as number) + 1;
    if (values[i] !== first[g]) differs[g] = 1;
    mean[g] = (mean[g] as number) + (values[i] as number);
  }
  for (let g = 0; g < groups.count; g++)
    mean[g] = differs[g] === 1 ? (mean[g] as number) / (size[g] as number) : (first[g] as number);
  for (let i = 0; i < values.length; i++) {
    const g = groups.of[i] as number;
    spread[g] = (spread[g] as number) + ((values[i] as number) - (mean[g] as number)) ** 2;
  }
  for (let g = 0; g < groups.count; g++) {
    const n = size[g] as number;
    spread[g] = n > 1 ? Math.sqrt((spread[g] as number) / (divisor === 'n' ? n : n - 1)) : 0;
  }
  return { size, mean, spread };
}
