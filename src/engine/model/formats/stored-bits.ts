import type { TensorDtype } from './safetensors-header.js';

/** The bits of a file's little-endian numbers: float32 and bfloat16 unchanged, float16 as float32, which is exact. */
export function storedBits(bytes: Uint8Array, dtype: TensorDtype): Uint32Array | Uint16Array {
  if (dtype === 'F32') return view(Uint32Array, bytes);
  const words = view(Uint16Array, bytes);
  if (dtype === 'BF16') return words;
  float16 ??= Uint32Array.from({ length: 2 ** 16 }, (_, half) => float16Bits(half));
  const bits = new Uint32Array(words.length);
  for (let i = 0; i < words.length; i++) bits[i] = float16[words[i] as number] as number;
  return bits;
}

/** The float32 bits of every float16. */
let float16: Uint32Array | undefined;

/** The float32 bits of a float16 (IEEE 754: 1 sign, 5 exponent, 10 fraction bits). */
function float16Bits(half: number): number {
  const sign = (half & 0x8000) << 16;
  const exponent = (half >>> 10) & 0x1f;
  const fraction = half & 0x3ff;
  if (exponent === 0x1f) return sign | 0x7f800000 | (fraction << 13);
  if (exponent > 0) return sign | ((exponent + 127 - 15) << 23) | (fraction << 13);
  if (fraction === 0) return sign;
  // Subnormal: move the leading one to the hidden bit.
  const shift = Math.clz32(fraction) - 21;
  return sign | ((113 - shift) << 23) | (((fraction << shift) & 0x3ff) << 13);
}

/** A view of the bytes as numbers, or a copy if they do not begin at a multiple of a number's size. */
function view<T>(
  Numbers: { readonly BYTES_PER_ELEMENT: number; new (buffer: ArrayBufferLike, offset: number, length: number): T },
  bytes: Uint8Array,
): T {
  const size = Numbers.BYTES_PER_ELEMENT;
  const { buffer, byteOffset, length } = bytes.byteOffset % size === 0 ? bytes : Uint8Array.from(bytes);
  return new Numbers(buffer, byteOffset, length / size);
}
