import { type DecoderTensors, tensorsInOrder } from '../../model/decoder/weights/decoder-tensors.js';
import { widen } from '../../tensor/bfloat16.js';
import type { Kernels } from '../../tensor/kernels.js';
import { isInBfloat16 } from '../../tensor/memory.js';

/** Numbers that are hashed at a time; a hash takes less than 2 GiB. */
const MOST_AT_ONCE = 2 ** 20;

/** Starts a SHA-256. */
export type StartHash = () => { update(bytes: Uint8Array): unknown; digest(form: 'hex'): string };

/**
 * SHA-256 of a decoder's weights as float32, in the engine's order: the same whatever files and number types hold them.
 */
export async function weightsHash(kernels: Kernels, tensors: DecoderTensors, startHash: StartHash): Promise<string> {
  const hash = startHash();
  const widened = new Float32Array(MOST_AT_ONCE);
  for (const tensor of tensorsInOrder(tensors)) {
    for (let at = 0; at < tensor.length; at += MOST_AT_ONCE) {
      const part = tensor.subarray(at, at + MOST_AT_ONCE);
      if (isInBfloat16(part)) widen(widened, (await kernels.read([part]))[0]);
      else widened.set((await kernels.read([part]))[0]);
      hash.update(new Uint8Array(widened.buffer, 0, 4 * part.length));
    }
  }
  return hash.digest('hex');
}
