import type { DecoderConfig, ProjectionName } from '../../../contract/architecture.js';
import { ArgumentError } from '../../../core/errors.js';
import { RandomStream } from '../../../core/random.js';
import { isBfloat16, widen } from '../../../tensor/bfloat16.js';
import type { WeightArray } from '../../../tensor/kernel-arguments.js';
import type { Kernels } from '../../../tensor/kernels.js';

/**
 * A layer's tensors. Matrices are [inputs, outputs] and used as y = x W; they may be in bfloat16 where nothing trains
 * them. Tensors of a feature that the config lacks are empty.
 */
export interface LayerTensors<Matrices extends WeightArray = WeightArray> {
  readonly attentionNorm: Float32Array; // [width]
  readonly qkv: Matrices; // [width, (heads + 2 kvHeads) headDim]
  readonly attentionOut: Matrices; // [heads · headDim, width]
  readonly feedForwardNorm: Float32Array; // [width]
  readonly gateUp: Matrices; // [width, 2 · feedForward]
  readonly down: Matrices; // [feedForward, width]
  readonly qkvBias: Float32Array; // [(heads + 2 kvHeads) headDim]
  readonly attentionOutBias: Float32Array; // [width]
  readonly queryNorm: Float32Array; // [headDim]
  readonly keyNorm: Float32Array; // [headDim]
}

export interface DecoderTensors<Matrices extends WeightArray = WeightArray> {
  readonly embedding: Matrices; // [vocabSize, width]
  readonly layers: readonly LayerTensors<Matrices>[];
  readonly finalNorm: Float32Array; // [width]
  readonly output: Matrices; // [vocabSize, width], the output head transposed: the embedding itself unless untied
}

/**
 * A decoder's tensors in float32, each a view into one flat buffer, so that the optimiser, the gradient's norm and a
 * checkpoint are one operation each.
 */
export interface FlatTensors extends DecoderTensors<Float32Array> {
  readonly flat: Float32Array;
}

/** The width of a row of queries, keys and values side by side. */
export function qkvWidth(config: DecoderConfig): number {
  return (config.heads + 2 * config.kvHeads) * config.headDim;
}

export const MATRICES = ['qkv', 'attentionOut', 'gateUp', 'down'] as const;
export type Matrix = (typeof MATRICES)[number];

/** A matrix [inputs, outputs] and the projections that stand side by side in it. */
export interface MatrixShape {
  readonly inputs: number;
  readonly outputs: number;
  readonly parts: readonly { readonly projection: ProjectionName; readonly outputs: number }[];
}

/** The matrices of every layer. */
export function matrixShapes(config: DecoderConfig): Readonly<Record<Matrix, MatrixShape>> {
  const { width, heads, kvHeads, headDim, feedForward } = config;
  const shape = (inputs: number, ...parts: (readonly [ProjectionName, number])[]): MatrixShape => ({
    inputs,
    outputs: parts.reduce((sum, [, outputs]) => sum + outputs, 0),
    parts: parts.map(([projection, outputs]) => ({ projection, outputs })),
  });
  return {
    qkv: shape(width, ['q', heads * headDim], ['k', kvHeads * headDim], ['v', kvHeads * headDim]),
    attentionOut: shape(heads * headDim, ['o', width]),
    gateUp: shape(width, ['gate', feedForward], ['up', feedForward]),
    down: shape(feedForward, ['down', width]),
  };
}

function layerShapes(config: DecoderConfig): Record<keyof LayerTensors, readonly number[]> {
  const { width, headDim, attentionBias, queryKeyNorm } = config;
  const shapes = matrixShapes(config);
  const matrix = (name: Matrix) => [shapes[name].inputs, shapes[name].outputs];
  const present = (feature: boolean, length: number) => [feature ? length : 0];
  return {
    attentionNorm: [width],
    qkv: matrix('qkv'),
    attentionOut: matrix('attentionOut'),
    feedForwardNorm: [width],
    gateUp: matrix('gateUp'),
    down: matrix('down'),
    qkvBias: present(attentionBias !== undefined, qkvWidth(config)),
    attentionOutBias: present(attentionBias === 'qkvo', width),
    queryNorm: present(queryKeyNorm === true, headDim),
    keyNorm: present(queryKeyNorm === true, headDim),
  };
}

const size = (shape: readonly number[]) => shape.reduce((a, b) => a * b, 1);

/** The number of floats in all tensors together. */
export function parameterCount(config: DecoderConfig): number {
  const layer = Object.values(layerShapes(config)).reduce((sum, shape) => sum + size(shape), 0);
  const matrices = config.untiedOutput ? 2 : 1;
  return matrices * config.vocabSize * config.width + config.layers * layer + config.width;
}

/**
 * A decoder's tensors as views into `flat`, which must hold exactly `parameterCount(config)` floats.
 * @throws ArgumentError when it does not
 */
export function decoderTensors(config: DecoderConfig, flat: Float32Array): FlatTensors {
  const count = parameterCount(config);
  if (flat.length !== count) throw new ArgumentError(`expected ${count} parameters, got ${flat.length}`);
  let offset = 0;
  const next = (length: number) => {
    offset += length;
    return flat.subarray(offset - length, offset);
  };
  return { flat, ...layOut(config, next, next) };
}

/** Allocates tensors whose matrices are in bfloat16, all 0; norms and biases are in float32. */
export function bfloat16Tensors(kernels: Kernels, config: DecoderConfig): DecoderTensors<Uint16Array> {
  return layOut(
    config,
    (length) => kernels.allocateBfloat16(length),
    (length) => kernels.allocate(length),
  );
}

/** Lays out the tensors in the order of the flat buffer; `matrix` and `vector` provide the memory of each. */
function layOut<Matrices extends WeightArray>(
  config: DecoderConfig,
  matrix: (length: number) => Matrices,
  vector: (length: number) => Float32Array,
): DecoderTensors<Matrices> {
  const shapes = layerShapes(config);
  const table = config.vocabSize * config.width;
  const embedding = matrix(table);
  const layers = Array.from({ length: config.layers }, () => ({
    attentionNorm: vector(size(shapes.attentionNorm)),
    qkv: matrix(size(shapes.qkv)),
    attentionOut: matrix(size(shapes.attentionOut)),
    feedForwardNorm: vector(size(shapes.feedForwardNorm)),
    gateUp: matrix(size(shapes.gateUp)),
    down: matrix(size(shapes.down)),
    qkvBias: vector(size(shapes.qkvBias)),
    attentionOutBias: vector(size(shapes.attentionOutBias)),
    queryNorm: vector(size(shapes.queryNorm)),
    keyNorm: vector(size(shapes.keyNorm)),
  }));
  const finalNorm = vector(config.width);
  return { embedding, layers, finalNorm, output: config.untiedOutput ? matrix(table) : embedding };
}

/** All tensors in the order of the flat buffer. */
export function tensorsInOrder({ embedding, layers, finalNorm, output }: DecoderTensors): WeightArray[] {
  const ofLayers = layers.flatMap((layer): WeightArray[] => [
    layer.attentionNorm,
    layer.qkv,
    layer.attentionOut,
    layer.feedForwardNorm,
    layer.gateUp,
    layer.down,
    layer.qkvBias,
    layer.attentionOutBias,
    layer.queryNorm,
    layer.keyNorm,
  ]);
  return [embedding, ...ofLayers, finalNorm, ...(output === embedding ? [] : [output])];
}

/** Copies the values of all tensors into one float32 buffer: [parameters]. */
export function flatCopy(tensors: DecoderTensors): Float32Array {
  const all = tensorsInOrder(tensors);
  const flat = new Float32Array(all.reduce((sum, { length }) => sum + length, 0));
  let offset = 0;
  for (const tensor of all) {
    const target = flat.subarray(offset, offset + tensor.length);
    if (isBfloat16(tensor)) widen(target, tensor);
    else target.set(tensor);
    offset += tensor.length;
  }
  return flat;
}

/** Checks a decoder's sizes. @throws ArgumentError when no decoder can have them */
export function checkConfig(config: DecoderConfig): void {
  const { heads, kvHeads, headDim, attentionBias, queryKeyNorm } = config;
  for (const [name, value] of Object.entries(config))
    if (typeof value === 'number' && !(value > 0))
      throw new ArgumentError(`a decoder's ${name} must be positive, got ${value}`);
  if (heads % kvHeads !== 0) throw new ArgumentError(`heads (${heads}) must be a multiple of kvHeads (${kvHeads})`);
  if (headDim % 2 !== 0) throw new ArgumentError(`headDim (${headDim}) must be even for rotary embedding`);
  if (queryKeyNorm && attentionBias === 'qkv')
    throw new ArgumentError(
      'a decoder with queryKeyNorm has biases on all of attention or none: no family is otherwise',
    );
}

/**
 * Random first weights, a pure function of the seed: matrices that read the residual stream and the embedding N(0,
 * 1/width), matrices that write to it N(0, 1/(2 · layers · inputs)) so that its variance does not grow with depth,
 * norms 1, biases 0. Where the embedding has another deviation and is the output head too, the final norm makes up for
 * it: first logits have variance 1 in any case.
 */
export function initialise(
  config: DecoderConfig,
  tensors: DecoderTensors<Float32Array>,
  seed: number,
  embeddingDeviation = config.width ** -0.5,
): void {
  const random = new RandomStream('initialise', seed);
  const fill = (tensor: Float32Array, deviation: number) => {
    for (let i = 0; i < tensor.length; i++) tensor[i] = random.normal() * deviation;
  };
  const reading = config.width ** -0.5;
  const writing = (inputs: number) => (2 * config.layers * inputs) ** -0.5;
  fill(tensors.embedding, embeddingDeviation);
  for (const layer of tensors.layers) {
    layer.attentionNorm.fill(1);
    layer.feedForwardNorm.fill(1);
    fill(layer.qkv, reading);
    fill(layer.attentionOut, writing(config.heads * config.headDim));
    fill(layer.gateUp, reading);
    fill(layer.down, writing(config.feedForward));
    layer.qkvBias.fill(0);
    layer.attentionOutBias.fill(0);
    layer.queryNorm.fill(1);
    layer.keyNorm.fill(1);
  }
  tensors.finalNorm.fill(config.untiedOutput ? 1 : reading / embeddingDeviation);
  if (config.untiedOutput) fill(tensors.output, reading);
}
