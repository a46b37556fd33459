/**
 * The similarity of two texts, from 0 to 1: 2 M / (|a| + |b|), with M the number of matched characters. The longest
 * common substring matches first, then recursively the parts to its left and right (Ratcliff & Obershelp 1988). Ties go
 * to the earliest position in a, then in b.
 */
export function similarity(a: string, b: string): number {
  if (a === b) return 1;
  const total = a.length + b.length;
  return total === 0 ? 1 : (2 * matched(a, b)) / total;
}

function matched(a: string, b: string): number {
  let count = 0;
  const open: [string, string][] = [[a, b]];
  for (let pair = open.pop(); pair !== undefined; pair = open.pop()) {
    const [left, right] = pair;
    const { length, inA, inB } = longestCommon(left, right);
    if (length === 0) continue;
    count += length;
    open.push([left.slice(0, inA), right.slice(0, inB)], [left.slice(inA + length), right.slice(inB + length)]);
  }
  return count;
}

function longestCommon(a: string, b: string): { length: number; inA: number; inB: number } {
  let best = { length: 0, inA: 0, inB: 0 };
  // lengths[j + 1] of the common substring that ends at a[i], b[j].
  let before = new Uint32Array(b.length + 1);
  for (let i = 0; i < a.length; i++) {
    const lengths = new Uint32Array(b.length + 1);
    for (let j = 0; j < b.length; j++) {
      if (a.charCodeAt(i) !== b.charCodeAt(j)) continue;
      const length = (before[j] as number) + 1;
      lengths[j + 1] = length;
      if (length > best.length) best = { length, inA: i - length + 1, inB: j - length + 1 };
    }
    before = lengths;
  }
  return best;
}
