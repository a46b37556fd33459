/**
 * Between the engine's tensors and Hugging Face's. The engine keeps a linear layer as [inputs, outputs] with the layers that
 * read the same input side by side; Hugging Face keeps each as [outputs, inputs]. Both rotate halves of a head (not
 * neighbours), so heads keep their order.
 */
import type { DecoderConfig } from '../../contract/architecture.js';
import { ArgumentError } from '../../core/errors.js';
import type { WeightArray } from '../../tensor/kernels.js';
import { type DecoderTensors, MATRICES, parameterCount, tensorsInOrder } from '../decoder/weights/decoder-tensors.js';
import { EMBEDDING, FINAL_NORM, normNames, OUTPUT, type Projection, projections } from './names.js';
import type { Place } from './place.js';
import { readInto, requireTensor, type StoredTensor } from './safetensors.js';

/**
 * Where a checkpoint's tensors stand in the engine's; those that the decoder does without are left out.
 * @throws ArgumentError when `tensors` has other sizes than `config` says.
 */
export function decoderPlaces(tensors: DecoderTensors, config: DecoderConfig): Place[] {
  requireSize(tensors, config);
  const { width, vocabSize, headDim } = config;
  const found: Place[] = [
    { name: EMBEDDING, shape: [vocabSize, width], data: tensors.embedding },
    { name: FINAL_NORM, shape: [width], data: tensors.finalNorm },
  ];
  if (config.untiedOutput) found.push({ name: OUTPUT, shape: [vocabSize, width], data: tensors.output });
  tensors.layers.forEach((layer, index) => {
    const names = normNames(index);
    found.push({ name: names.attention, shape: [width], data: layer.attentionNorm });
    found.push({ name: names.feedForward, shape: [width], data: layer.feedForwardNorm });
    if (config.queryKeyNorm) {
      found.push({ name: names.query, shape: [headDim], data: layer.queryNorm });
      found.push({ name: names.key, shape: [headDim], data: layer.keyNorm });
    }
    const parts = projections(config, index);
    found.push(...biases(layer.qkvBias, parts.qkv), ...biases(layer.attentionOutBias, parts.attentionOut));
    for (const matrix of MATRICES) found.push(...sideBySide(layer[matrix], parts[matrix]));
  });
  return found;
}

/**
 * Fills the engine's tensors from Hugging Face's.
 * @throws CheckpointError when a tensor is missing, of another shape or cannot be read; ArgumentError when `target` has other
 * sizes.
 */
export async function fromHuggingFace(
  target: DecoderTensors,
  source: ReadonlyMap<string, StoredTensor>,
  config: DecoderConfig,
  file = 'checkpoint',
): Promise<void> {
  for (const place of decoderPlaces(target, config)) await readInto(place, requireTensor(source, place, file));
}

/** The parts of a bias; none where it is empty. */
function biases(bias: Float32Array, parts: readonly Projection[]): Place[] {
  if (bias.length === 0) return [];
  let end = 0;
  return parts.map(({ name, outputs }) => {
    end += outputs;
    return { name: `${name}.bias`, shape: [outputs], data: bias.subarray(end - outputs, end) };
  });
}

/** The projections whose transposes stand side by side in a matrix of the engine. */
function sideBySide(matrix: WeightArray, parts: readonly Projection[]): Place[] {
  const stride = totalOutputs(parts);
  let column = 0;
  return parts.map(({ name, outputs, inputs }) => {
    column += outputs;
    return { name: `${name}.weight`, shape: [outputs, inputs], data: matrix.subarray(column - outputs), stride };
  });
}

function totalOutputs(parts: readonly Projection[]): number {
  return parts.reduce((sum, { outputs }) => sum + outputs, 0);
}

function requireSize(tensors: DecoderTensors, config: DecoderConfig): void {
  const expected = parameterCount(config);
  const found = tensorsInOrder(tensors).reduce((sum, { length }) => sum + length, 0);
  if (found !== expected) throw new ArgumentError(`expected ${expected} parameters, found ${found}`);
}
