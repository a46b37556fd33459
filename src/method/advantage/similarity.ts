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

/**
 * Whether two texts are at least this similar. Most pairs of long texts are told apart by a bound: the matched
 * characters are a common subsequence, so there are at most as many as in the longest, which takes a fraction of the
 * time.
 */
export function areSimilar(a: string, b: string, threshold: number): boolean {
  const needed = (threshold * (a.length + b.length)) / 2 - 1e-6;
  if (a !== b && (Math.min(a.length, b.length) < needed || longestSubsequence(a, b) < needed)) return false;
  return similarity(a, b) >= threshold;
}

/** The length of the longest common subsequence, in one word of bits for all of a (Hyyrö 2004). */
function longestSubsequence(a: string, b: string): number {
  const places = new Map<string, bigint>();
  for (const [i, character] of a.split('').entries())
    places.set(character, (places.get(character) ?? 0n) | (1n << BigInt(i)));
  const all = (1n << BigInt(a.length)) - 1n;
  let unmatched = all;
  for (const character of b.split('')) {
    const also = unmatched & (places.get(character) ?? 0n);
    unmatched = ((unmatched + also) | (unmatched - also)) & all;
  }
  return a.length - (unmatched.toString(2).match(/1/g)?.length ?? 0);
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
