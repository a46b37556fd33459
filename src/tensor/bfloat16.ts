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
