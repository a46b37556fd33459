import { createHash } from 'node:crypto';
import { type DecoderTensors, tensorsInOrder } from '../../../model/decoder/weights/decoder-tensors.js';
import { isBfloat16, widen } from '../../../tensor/bfloat16.js';

/** Numbers that are hashed at a time; a hash takes less than 2 GiB. */
const MOST_AT_ONCE = 2 ** 20;

/**
 * SHA-256 of a decoder's weights as float32, in the engine's order: the same whatever files and number types hold them.
 */
export function weightsHash(tensors: DecoderTensors): string {
  const hash = createHash('sha256');
  const widened = new Float32Array(MOST_AT_ONCE);
  for (const tensor of tensorsInOrder(tensors)) {
    for (let at = 0; at < tensor.length; at += MOST_AT_ONCE) {
      const part = tensor.subarray(at, at + MOST_AT_ONCE);
      const numbers = isBfloat16(part) ? widened.subarray(0, part.length) : part;
      if (isBfloat16(part)) widen(widened, part);
      hash.update(new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength));
    }
  }
  return hash.digest('hex');
}
