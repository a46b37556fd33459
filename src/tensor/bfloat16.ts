import type { WeightArray } from './kernel-arguments.js';

/** Whether a matrix is in bfloat16. */
export const isBfloat16 = (matrix: WeightArray | Uint32Array): matrix is Uint16Array => matrix instanceof Uint16Array;

/**
 * The first from.length of `to` become the numbers `from`, which float32 holds exactly: bits stay, those of what is
 * not a number too. `to` is at least as long.
 */
export function widen(to: Float32Array, from: Uint16Array): void {
  const bits = new Uint32Array(to.buffer, to.byteOffset, from.length);
  for (let i = 0; i < bits.length; i++) bits[i] = (from[i] as number) << 16;
}

/**
 * The numbers `from` in bfloat16: the nearest one, ties to even. Subnormal numbers become 0, as processors read them.
 */
export function narrowed(from: WeightArray): Uint16Array {
  if (isBfloat16(from)) return from.map((bits) => ((bits & 0x7f80) === 0 ? bits & 0x8000 : bits));
  const bits = new Uint32Array(from.buffer, from.byteOffset, from.length);
  return Uint16Array.from(bits, (all) => {
    const upper = all >>> 16;
    const magnitude = all & 0x7fffffff;
    if (magnitude > 0x7f800000) return upper | 0x40; // not a number, and it stays none
    return magnitude < 0x00800000 ? upper & 0x8000 : (all + 0x7fff + (upper & 1)) >>> 16;
  });
}
