import { createHash } from 'node:crypto';

/** A hash takes less than 2 GiB at a time. */
const MOST_AT_ONCE = 2 ** 26;

/** SHA-256 of a decoder's weights as float32, in the engine's order: the same whatever files and number types hold them. */
export function weightsHash(weights: Float32Array): string {
  const hash = createHash('sha256');
  const bytes = new Uint8Array(weights.buffer, weights.byteOffset, weights.byteLength);
  for (let at = 0; at < bytes.length; at += MOST_AT_ONCE) hash.update(bytes.subarray(at, at + MOST_AT_ONCE));
  return hash.digest('hex');
}
