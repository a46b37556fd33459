import type { DecoderTensors, FlatTensors } from '@drmas/engine/internal/model/decoder/weights/decoder-tensors';
import type { WeightArray } from '@drmas/engine/internal/tensor/kernel-arguments';
import { type Floats, isOnHost, type WeightMemory } from '@drmas/engine/internal/tensor/memory';

/** The numbers of memory of a processor's kernels, to be read and written in place. */
export function onHost(memory: Floats): Float32Array;
export function onHost(memory: WeightMemory): WeightArray;
export function onHost(memory: WeightMemory): WeightArray {
  if (!isOnHost(memory)) throw new Error('a device has this memory');
  return memory;
}

/** The same tensors, which lie in the memory of a processor's kernels. */
export function tensorsOnHost(tensors: FlatTensors): FlatTensors<Float32Array>;
export function tensorsOnHost(tensors: DecoderTensors): DecoderTensors<WeightArray, Float32Array>;
export function tensorsOnHost(tensors: DecoderTensors): DecoderTensors<WeightArray, Float32Array> {
  onHost(tensors.finalNorm);
  return tensors as DecoderTensors<WeightArray, Float32Array>;
}
