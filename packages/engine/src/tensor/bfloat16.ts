import type { WeightArray } from './kernel-arguments.js';

export const isBfloat16 = (matrix: WeightArray | Uint32Array): matrix is Uint16Array => matrix instanceof Uint16Array;

/**
 * Writes the numbers `from` to the first from.length places of `to`, which is at least as long. Float32 holds them
 * exactly: all bits stay, also the bits of not-a-number.
 */
export function widen(to: Float32Array, from: Uint16Array): void {
  const bits = new Uint32Array(to.buffer, to.byteOffset, from.length);
  for (let i = 0; i < bits.length; i++) bits[i] = (from[i] as number) << 16;
}

/**
 * The numbers `from` in bfloat16: the nearest one, ties to even. Subnormal numbers become 0, as processors read them.
 */
export function toBfloat16(from: WeightArray): Uint16Array {
  if (isBfloat16(from)) return from.map((bits) => ((bits & 0x7f80) === 0 ? bits & 0x8000 : bits));
  const bits = new Uint32Array(from.buffer, from.byteOffset, from.length);
  return Uint16Array.from(bits, (all) => {
    const upper = all >>> 16;
    const magnitude = all & 0x7fffffff;
    if (magnitude > 0x7f800000) return upper | 0x40; // not a number, and it stays none
    return magnitude < 0x00800000 ? upper & 0x8000 : (all + 0x7fff + (upper & 1)) >>> 16;
  });
}

/**
 * How products in bfloat16 are computed: by AMX's tiles, by AVX512-BF16's pairs on processors whose pairs are faster
 * than floats (not on Intel), or by the float32 kernels on rounded floats. The latter two give the same bits. Tiles,
 * which can be emulated, sum in another order.
 */
export type Bfloat16Products = 'amx' | 'amx-emulated' | 'avx512-bf16' | 'widened';

/** Whether products are summed in tiles, not pair by pair. */
export const inTiles = (products: Bfloat16Products): boolean => products === 'amx' || products === 'amx-emulated';
