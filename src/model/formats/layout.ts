/**
 * Between the engine's tensors and Hugging Face's. The engine keeps a linear layer as [inputs, outputs] with the layers that
 * read the same input side by side; Hugging Face keeps each as [outputs, inputs]. Both rotate halves of a head (not
 * neighbours), so heads keep their order.
 */
import type { DecoderConfig } from '../../core/backend.js';
import { ArgumentError } from '../../core/errors.js';
import { type DecoderTensors, MATRICES, parameterCount } from '../decoder/parameters.js';
import { EMBEDDING, FINAL_NORM, normNames, OUTPUT, type Projection, projections } from './names.js';
import { type NamedTensor, requireTensor, type StoredTensor } from './safetensors.js';

/**
 * Fills the engine's tensors from Hugging Face's.
 * @throws CheckpointError when a tensor is missing or of another shape; ArgumentError when `target` has other sizes.
 */
export function fromHuggingFace(
  target: DecoderTensors,
  source: ReadonlyMap<string, StoredTensor>,
  config: DecoderConfig,
  file = 'checkpoint',
): void {
  requireSize(target, config);
  const read = (name: string, ...shape: number[]) => requireTensor(source, { name, shape }, file).data;
  for (const { name, shape, data } of direct(target, config)) data.set(read(name, ...shape));
  for (const { matrix, parts } of fused(target, config)) {
    const stride = totalOutputs(parts);
    let column = 0;
    for (const { name, outputs, inputs } of parts) {
      const weight = read(`${name}.weight`, outputs, inputs);
      for (let o = 0; o < outputs; o++) {
        for (let i = 0; i < inputs; i++) matrix[i * stride + column + o] = weight[o * inputs + i] as number;
      }
      column += outputs;
    }
  }
}

/**
 * Copies of the engine's tensors under Hugging Face's names, as `transformers` loads them.
 * @throws ArgumentError when `tensors` has other sizes than `config` says.
 */
export function toHuggingFace(tensors: DecoderTensors, config: DecoderConfig): NamedTensor[] {
  requireSize(tensors, config);
  const result: NamedTensor[] = direct(tensors, config).map((tensor) => ({ ...tensor, data: tensor.data.slice() }));
  for (const { matrix, parts } of fused(tensors, config)) {
    const stride = totalOutputs(parts);
    let column = 0;
    for (const { name, outputs, inputs } of parts) {
      const data = new Float32Array(outputs * inputs);
      for (let o = 0; o < outputs; o++) {
        for (let i = 0; i < inputs; i++) data[o * inputs + i] = matrix[i * stride + column + o] as number;
      }
      result.push({ name: `${name}.weight`, shape: [outputs, inputs], data });
      column += outputs;
    }
  }
  return result;
}

/** The tensors that are the same on both sides; those that the decoder does without are left out. */
function direct(tensors: DecoderTensors, config: DecoderConfig): NamedTensor[] {
  const { width, vocabSize, headDim } = config;
  const found: NamedTensor[] = [
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
    const { qkv, attentionOut } = projections(config, index);
    found.push(...biases(layer.qkvBias, qkv), ...biases(layer.attentionOutBias, attentionOut));
  });
  return found;
}

/** The parts of a bias, views of it; none where it is empty. */
function biases(bias: Float32Array, parts: readonly Projection[]): NamedTensor[] {
  if (bias.length === 0) return [];
  let end = 0;
  return parts.map(({ name, outputs }) => {
    end += outputs;
    return { name: `${name}.bias`, shape: [outputs], data: bias.subarray(end - outputs, end) };
  });
}

/** The engine's matrices, each with the projections that stand side by side in it. */
function fused(tensors: DecoderTensors, config: DecoderConfig): { matrix: Float32Array; parts: Projection[] }[] {
  return tensors.layers.flatMap((layer, index) => {
    const parts = projections(config, index);
    return MATRICES.map((matrix) => ({ matrix: layer[matrix], parts: parts[matrix] }));
  });
}

function totalOutputs(parts: readonly Projection[]): number {
  return parts.reduce((sum, { outputs }) => sum + outputs, 0);
}

function requireSize({ flat }: DecoderTensors, config: DecoderConfig): void {
  const expected = parameterCount(config);
  if (flat.length !== expected) throw new ArgumentError(`expected ${expected} parameters, found ${flat.length}`);
}
