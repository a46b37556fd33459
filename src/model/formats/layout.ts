/**
 * Between the engine's tensors and Hugging Face's. The engine keeps a linear layer as [inputs, outputs] with the layers that
 * read the same input side by side; Hugging Face keeps each as [outputs, inputs]. Both rotate halves of a head (not
 * neighbours), so heads keep their order.
 */
import type { DecoderConfig } from '../../core/backend.js';
import { ArgumentError } from '../../core/errors.js';
import { EMBEDDING, FINAL_NORM, normNames, type Projection, projections } from './names.js';
import { type NamedTensor, requireTensor, type StoredTensor } from './safetensors.js';

/** One layer of a decoder: H heads, K key/value heads of hd values, feed-forward width f. */
export interface LayerTensors {
  readonly attentionNorm: Float32Array; // [d]
  readonly qkv: Float32Array; // [d, (H + 2K) hd]
  readonly attentionOut: Float32Array; // [H hd, d]
  readonly feedForwardNorm: Float32Array; // [d]
  readonly gateUp: Float32Array; // [d, 2f]
  readonly down: Float32Array; // [f, d]
}

/** The weights of a decoder with tied embeddings. */
export interface DecoderTensors {
  readonly embedding: Float32Array; // [V, d]
  readonly layers: readonly LayerTensors[];
  readonly finalNorm: Float32Array; // [d]
}

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

/** The tensors that are the same on both sides. */
function direct(tensors: DecoderTensors, config: DecoderConfig): NamedTensor[] {
  const { width, vocabSize } = config;
  const found: NamedTensor[] = [
    { name: EMBEDDING, shape: [vocabSize, width], data: tensors.embedding },
    { name: FINAL_NORM, shape: [width], data: tensors.finalNorm },
  ];
  requireLength('layers', tensors.layers, config.layers);
  tensors.layers.forEach(({ attentionNorm, feedForwardNorm }, index) => {
    const names = normNames(index);
    found.push({ name: names.attention, shape: [width], data: attentionNorm });
    found.push({ name: names.feedForward, shape: [width], data: feedForwardNorm });
  });
  for (const { name, shape, data } of found)
    requireLength(
      name,
      data,
      shape.reduce((a, b) => a * b, 1),
    );
  return found;
}

/** The engine's matrices, each with the projections that stand side by side in it. */
function fused(tensors: DecoderTensors, config: DecoderConfig): { matrix: Float32Array; parts: Projection[] }[] {
  return tensors.layers.flatMap(({ qkv, attentionOut, gateUp, down }, index) => {
    const layer = projections(config, index);
    const matrices = [
      { matrix: qkv, parts: [layer.query, layer.key, layer.value] },
      { matrix: attentionOut, parts: [layer.attentionOut] },
      { matrix: gateUp, parts: [layer.gate, layer.up] },
      { matrix: down, parts: [layer.down] },
    ];
    for (const { matrix, parts } of matrices) {
      const inputs = parts[0]?.inputs ?? 0;
      requireLength(parts.map(({ name }) => name).join(' + '), matrix, inputs * totalOutputs(parts));
    }
    return matrices;
  });
}

function totalOutputs(parts: readonly Projection[]): number {
  return parts.reduce((sum, { outputs }) => sum + outputs, 0);
}

function requireLength(name: string, found: ArrayLike<unknown>, expected: number): void {
  if (found.length !== expected)
    throw new ArgumentError(`${name}: expected ${expected} entries, found ${found.length}`);
}
