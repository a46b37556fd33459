import type { DecoderConfig } from '@drmas/engine/contract';
import type { DecoderTensors, FlatTensors } from '@drmas/engine/internal/model/decoder/weights/decoder-tensors';
import { decoderPlaces } from '@drmas/engine/internal/model/formats/decoder-layout';
import { readInto, requireTensor, type StoredTensor } from '@drmas/engine/internal/model/formats/safetensors';
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

/** Reads a checkpoint's tensors into a decoder's. @throws CheckpointError when one is missing or of another shape */
export async function fromHuggingFace(
  target: DecoderTensors<WeightArray, Float32Array>,
  source: ReadonlyMap<string, StoredTensor>,
  config: DecoderConfig,
  file = 'checkpoint',
): Promise<void> {
  for (const place of decoderPlaces(target, config)) await readInto(place, requireTensor(source, place, file));
}
