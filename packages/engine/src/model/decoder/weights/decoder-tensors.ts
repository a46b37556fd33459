import type { DecoderConfig, ProjectionName, SlidingWindow } from '../../../contract/architecture.js';
import { ArgumentError } from '../../../errors.js';
import { RandomStream } from '../../../math.js';
import { widen } from '../../../tensor/bfloat16.js';
import { type BlockFormat, type BlockMatrix, blockWords, unpackMatrix } from '../../../tensor/blocks.js';
import type { Heads, MatrixKind } from '../../../tensor/kernel-arguments.js';
import type { Kernels } from '../../../tensor/kernels.js';
import { type Floats, isInBfloat16, type WeightMemory } from '../../../tensor/memory.js';

/**
 * A layer's tensors. Matrices are [inputs, outputs] and used as y = x W; they may be in bfloat16 if nothing trains
 * them. Tensors of a feature that the config lacks are empty.
 */
export interface LayerTensors<Matrices extends WeightMemory = WeightMemory, Vectors extends Floats = Floats> {
  readonly attentionNorm: Vectors; // [width]
  readonly qkv: Matrices; // [width, (heads + 2 kvHeads) headDim], of a layer that convolves [width, 3 · width]
  readonly attentionOut: Matrices; // [heads · headDim, width], likewise [width, width]
  readonly feedForwardNorm: Vectors; // [width]
  readonly gateUp: Matrices; // [width, 2 · feedForward]
  readonly down: Matrices; // [feedForward, width]
  readonly qkvBias: Vectors; // [(heads + 2 kvHeads) headDim]
  readonly attentionOutBias: Vectors; // [width]
  readonly queryNorm: Vectors; // [headDim]
  readonly keyNorm: Vectors; // [headDim]
  readonly attentionResultNorm: Vectors; // [width]
  readonly feedForwardResultNorm: Vectors; // [width]
  readonly convolution: Vectors; // [taps, width]
}

export interface DecoderTensors<Matrices extends WeightMemory = WeightMemory, Vectors extends Floats = Floats> {
  readonly embedding: Matrices; // [vocabSize, width]
  readonly layers: readonly LayerTensors<Matrices, Vectors>[];
  readonly finalNorm: Vectors; // [width]
  readonly output: Matrices; // [vocabSize, width], the output head transposed: the embedding itself unless untied
}

/**
 * A decoder's tensors in float32, each a view into one flat buffer, so that the optimiser, the gradient's norm and a
 * checkpoint are one operation each.
 */
export interface FlatTensors<F extends Floats = Floats> extends DecoderTensors<F, F> {
  readonly flat: F;
}

export function qkvWidth(config: DecoderConfig): number {
  return (config.heads + 2 * config.kvHeads) * config.headDim;
}

/** The width of a row that the first matrix of any layer computes. */
export function projectedWidth(config: DecoderConfig): number {
  return config.convolution === undefined ? qkvWidth(config) : Math.max(qkvWidth(config), 3 * config.width);
}

export const convolves = ({ convolution }: DecoderConfig, layer: number): boolean =>
  convolution?.layers.includes(layer) ?? false;

export const layersOf = ({ layers }: DecoderConfig): number[] => Array.from({ length: layers }, (_, layer) => layer);

export function layerHeads(config: DecoderConfig, layer: number): Heads {
  const { heads, kvHeads, headDim, slidingWindow } = config;
  if (!slidingWindow?.layers.includes(layer)) return config;
  return { heads, kvHeads, headDim, window: slidingWindow.positions };
}

/** A matrix of a layer. */
export type Matrix = 'qkv' | 'attentionOut' | 'gateUp' | 'down';
export const MATRICES = ['qkv', 'attentionOut', 'gateUp', 'down'] as const satisfies readonly Matrix[];

/** A value for each matrix of a layer. */
export const byMatrix = <Value>(of: (matrix: Matrix) => Value): Record<Matrix, Value> =>
  Object.fromEntries(MATRICES.map((matrix) => [matrix, of(matrix)])) as Record<Matrix, Value>;

/** A matrix [inputs, outputs] and the projections that it holds side by side. */
export interface MatrixShape {
  readonly inputs: number;
  readonly outputs: number;
  readonly parts: readonly { readonly projection: LayerProjection; readonly outputs: number }[];
}

/** A projection of a layer; `in` is the joined one of a layer that convolves: its B, C and x. */
export type LayerProjection = ProjectionName | 'in';

export function matrixShapes(config: DecoderConfig, layer: number): Readonly<Record<Matrix, MatrixShape>> {
  const { width, heads, kvHeads, headDim, feedForward } = config;
  const shape = (inputs: number, ...parts: (readonly [LayerProjection, number])[]): MatrixShape => ({
    inputs,
    outputs: parts.reduce((sum, [, outputs]) => sum + outputs, 0),
    parts: parts.map(([projection, outputs]) => ({ projection, outputs })),
  });
  const attention: readonly (readonly [LayerProjection, number])[] = [
    ['q', heads * headDim],
    ['k', kvHeads * headDim],
    ['v', kvHeads * headDim],
  ];
  return {
    qkv: shape(width, ...(convolves(config, layer) ? [['in', 3 * width] as const] : attention)),
    attentionOut: shape(heads * headDim, ['o', width]),
    gateUp: shape(width, ['gate', feedForward], ['up', feedForward]),
    down: shape(feedForward, ['down', width]),
  };
}

/** The shapes of a layer's tensors, in the order of the flat buffer. */
function layerShapes(config: DecoderConfig, layer: number): Record<keyof LayerTensors, readonly number[]> {
  const { width, headDim, attentionBias, queryKeyNorm, resultNorms, convolution } = config;
  const isConvolution = convolves(config, layer);
  const shapes = matrixShapes(config, layer);
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
    queryNorm: present(queryKeyNorm === true && !isConvolution, headDim),
    keyNorm: present(queryKeyNorm === true && !isConvolution, headDim),
    attentionResultNorm: present(resultNorms === true, width),
    feedForwardResultNorm: present(resultNorms === true, width),
    convolution: isConvolution ? [convolution?.taps ?? 0, width] : [0],
  };
}

const size = (shape: readonly number[]) => shape.reduce((a, b) => a * b, 1);

/** The formats of a decoder whose matrices are all in blocks. */
export interface BlockFormats extends InBlocks<BlockFormat> {}

/** The number format of a base's matrices: one of all, or the formats of blocks. */
export type BaseKind = MatrixKind | BlockFormats;

export interface BlockMatrices extends InBlocks<BlockMatrix> {}

interface InBlocks<Each> {
  readonly embedding: Each;
  readonly layers: readonly Readonly<Record<Matrix, Each>>[];
  /** The embedding itself unless untied. */
  readonly output: Each;
}

/** The number of floats in all tensors together. */
export function parameterCount(config: DecoderConfig): number {
  const shapes = layersOf(config).flatMap((layer) => Object.values(layerShapes(config, layer)));
  const layers = shapes.reduce((sum, shape) => sum + size(shape), 0);
  const matrices = config.untiedOutput ? 2 : 1;
  return matrices * config.vocabSize * config.width + layers + config.width;
}

/**
 * A decoder's tensors as views into `flat`, which must hold exactly `parameterCount(config)` floats.
 * @throws ArgumentError when it does not
 */
export function decoderTensors<F extends Floats>(config: DecoderConfig, flat: F): FlatTensors<F> {
  const count = parameterCount(config);
  if (flat.length !== count) throw new ArgumentError(`expected ${count} parameters, got ${flat.length}`);
  let offset = 0;
  const next = (length: number) => {
    offset += length;
    return flat.subarray(offset - length, offset) as F;
  };
  return { flat, ...layOut(config, next, next) };
}

/** Allocates tensors by themselves, all 0: norms and biases in float32, the matrices by the given function. */
export const separateTensors = <Matrices extends WeightMemory>(
  kernels: Kernels,
  config: DecoderConfig,
  matrix: (length: number) => Matrices,
): DecoderTensors<Matrices> => layOut(config, matrix, (length) => kernels.allocate(length));

/** Allocates matrices in blocks, all 0. */
export function blockMatrices(kernels: Kernels, config: DecoderConfig, formats: BlockFormats): BlockMatrices {
  const allocate = (format: BlockFormat, { inputs, outputs }: Pick<MatrixShape, 'inputs' | 'outputs'>) => {
    const words = kernels.allocateIntegers(blockWords({ format, inputs, outputs }));
    return { format, words, inputs, outputs };
  };
  const table = { inputs: config.width, outputs: config.vocabSize };
  const embedding = allocate(formats.embedding, table);
  return {
    embedding,
    layers: formats.layers.map((layer, l) => {
      const shapes = matrixShapes(config, l);
      return byMatrix((matrix) => allocate(layer[matrix], shapes[matrix]));
    }),
    output: config.untiedOutput ? allocate(formats.output, table) : embedding,
  };
}

/** Allocates norms and biases, all 0. A matrix is copied from its blocks when it is read, unless a copy exists. */
export function tensorsOverBlocks(
  kernels: Kernels,
  config: DecoderConfig,
  { embedding, layers, output }: BlockMatrices,
): DecoderTensors<Floats> {
  const none = kernels.allocate(0);
  const tensors = separateTensors(kernels, config, () => none);
  const copies = new WeakMap<BlockMatrix, WeakRef<Float32Array>>();
  const copyOf = (matrix: BlockMatrix, transpose: boolean) => () => {
    const present = copies.get(matrix)?.deref();
    if (present !== undefined) return present;
    const copy = kernels.allocate(matrix.inputs * matrix.outputs) as Float32Array;
    unpackMatrix(matrix as BlockMatrix<Int32Array>, copy, transpose);
    copies.set(matrix, new WeakRef(copy));
    return copy;
  };
  tensors.layers.forEach((layer, l) => {
    for (const name of MATRICES) {
      const matrix = layers[l]?.[name];
      if (matrix !== undefined) Object.defineProperty(layer, name, { get: copyOf(matrix, false), enumerable: true });
    }
  });
  Object.defineProperty(tensors, 'embedding', { get: copyOf(embedding, true), enumerable: true });
  Object.defineProperty(tensors, 'output', { get: copyOf(output, true), enumerable: true });
  return tensors;
}

/** Lays out the tensors in the order of the flat buffer; `matrix` and `vector` provide the memory of each. */
function layOut<Matrices extends WeightMemory, Vectors extends Floats>(
  config: DecoderConfig,
  matrix: (length: number) => Matrices,
  vector: (length: number) => Vectors,
): DecoderTensors<Matrices, Vectors> {
  const table = config.vocabSize * config.width;
  const embedding = matrix(table);
  const layers = layersOf(config).map((layer) => {
    const allocated = Object.entries(layerShapes(config, layer)).map(
      ([name, shape]) => [name, (MATRICES.some((each) => each === name) ? matrix : vector)(size(shape))] as const,
    );
    return Object.fromEntries(allocated) as unknown as LayerTensors<Matrices, Vectors>;
  });
  const finalNorm = vector(config.width);
  return { embedding, layers, finalNorm, output: config.untiedOutput ? matrix(table) : embedding };
}

/** All tensors in the order of the flat buffer. */
export const tensorsInOrder = <Matrices extends WeightMemory, Vectors extends Floats>(
  tensors: DecoderTensors<Matrices, Vectors>,
): (Matrices | Vectors)[] => [...eachTensor(tensors)];

/** The same one after another: the matrices of frozen weights may be copies, which exist one at a time then. */
export function* eachTensor<Matrices extends WeightMemory, Vectors extends Floats>({
  embedding,
  layers,
  finalNorm,
  output,
}: DecoderTensors<Matrices, Vectors>): Generator<Matrices | Vectors> {
  yield embedding;
  for (const layer of layers) for (const name of Object.keys(layer) as (keyof LayerTensors)[]) yield layer[name];
  yield finalNorm;
  if (output !== embedding) yield output;
}

/** Copies the values of all tensors into one float32 buffer: [parameters]. */
export async function flatCopy(kernels: Kernels, tensors: DecoderTensors | FlatTensors): Promise<Float32Array> {
  if ('flat' in tensors) return (await kernels.read([tensors.flat]))[0];
  let total = 0;
  for (const { length } of eachTensor(tensors)) total += length;
  const flat = new Float32Array(total);
  let offset = 0;
  for (const tensor of eachTensor(tensors)) {
    const target = flat.subarray(offset, offset + tensor.length);
    if (isInBfloat16(tensor)) widen(target, (await kernels.read([tensor]))[0]);
    else target.set((await kernels.read([tensor]))[0]);
    offset += tensor.length;
  }
  return flat;
}

/** The features that all models of Gemma 3 have. */
const GEMMA = ['gate', 'offsetNorms', 'resultNorms', 'scaledEmbedding'] as const;

/** Checks a decoder's sizes. @throws ArgumentError when no decoder can have them */
export function checkConfig(config: DecoderConfig): void {
  const { heads, kvHeads, headDim, attentionBias, queryKeyNorm, unrotatedLayers, convolution } = config;
  const gemma = GEMMA.filter((feature) => config[feature] !== undefined);
  for (const [name, value] of Object.entries(config))
    if (typeof value === 'number' && !(value > 0))
      throw new ArgumentError(`a decoder's ${name} must be positive, got ${value}`);
  if (heads % kvHeads !== 0) throw new ArgumentError(`heads (${heads}) must be a multiple of kvHeads (${kvHeads})`);
  if (headDim % 2 !== 0) throw new ArgumentError(`headDim (${headDim}) must be even for rotary embedding`);
  if (queryKeyNorm && attentionBias === 'qkv')
    throw new ArgumentError(
      'a decoder with queryKeyNorm has biases on all of attention or none: no family is otherwise',
    );
  if (unrotatedLayers !== undefined && (queryKeyNorm || attentionBias === 'qkv'))
    throw new ArgumentError(
      'a decoder with unrotatedLayers has no queryKeyNorm, and biases on all of attention or none: no family is otherwise',
    );
  const isGemma = gemma.length === GEMMA.length && queryKeyNorm && attentionBias !== 'qkv' && !unrotatedLayers;
  if ((gemma.length > 0 || config.scoreDivisor) && !isGemma)
    throw new ArgumentError(
      `a decoder with scoreDivisor or one of ${GEMMA.join(', ')} has all of these four and queryKeyNorm, no ` +
        'unrotatedLayers, and biases on all of attention or none: no family is otherwise',
    );
  if (config.slidingWindow && !isGemma) checkMistral(config, config.slidingWindow);
  if (convolution && (isGemma || !queryKeyNorm || attentionBias || config.width !== heads * headDim))
    throw new ArgumentError(
      `a decoder with convolution has queryKeyNorm, no biases, heads as wide as the stream together, and none of ` +
        `${GEMMA.join(', ')}: no family is otherwise`,
    );
}

/** Checks a decoder with a window that is not of Gemma 3. @throws ArgumentError */
function checkMistral(config: DecoderConfig, { layers, ropeBase }: SlidingWindow): void {
  const { attentionBias, queryKeyNorm, unrotatedLayers, convolution, ropeScaling } = config;
  const isLlama = !attentionBias && !queryKeyNorm && !unrotatedLayers && !convolution && !ropeScaling;
  if (isLlama && layers.length === config.layers && ropeBase === config.ropeBase) return;
  throw new ArgumentError(
    `a decoder with slidingWindow has all of ${GEMMA.join(', ')}, or none of the features of other families and the ` +
      "same window and rotation in all layers (Mistral's): no family is otherwise",
  );
}

/**
 * Random first weights, a pure function of the seed: matrices that read the residual stream and the embedding N(0,
 * 1/width), matrices that write to it N(0, 1/(2 · layers · inputs)) so that its variance does not grow with depth,
 * taps N(0, 1/taps), gains of norms 1, biases 0. If the embedding has another deviation and is the output head too, the
 * final norm makes up for it: first logits have variance 1 in any case.
 */
export function initialise(
  config: DecoderConfig,
  tensors: DecoderTensors<Float32Array, Float32Array>,
  seed: number,
  embeddingDeviation = config.width ** -0.5,
): void {
  const random = new RandomStream('initialise', seed);
  const fill = (tensor: Float32Array, deviation: number) => {
    for (let i = 0; i < tensor.length; i++) tensor[i] = random.normal() * deviation;
  };
  const reading = config.width ** -0.5;
  const offset = config.offsetNorms ? 1 : 0;
  const writing = (inputs: number) => (2 * config.layers * inputs) ** -0.5;
  fill(tensors.embedding, embeddingDeviation);
  for (const layer of tensors.layers) {
    layer.attentionNorm.fill(1 - offset);
    layer.feedForwardNorm.fill(1 - offset);
    fill(layer.qkv, reading);
    fill(layer.attentionOut, writing(config.heads * config.headDim));
    fill(layer.gateUp, reading);
    fill(layer.down, writing(config.feedForward));
    layer.qkvBias.fill(0);
    layer.attentionOutBias.fill(0);
    layer.queryNorm.fill(1 - offset);
    layer.keyNorm.fill(1 - offset);
    layer.attentionResultNorm.fill(1 - offset);
    layer.feedForwardResultNorm.fill(1 - offset);
    fill(layer.convolution, (config.convolution?.taps ?? 1) ** -0.5);
  }
  tensors.finalNorm.fill((config.untiedOutput ? 1 : reading / embeddingDeviation) - offset);
  if (config.untiedOutput) fill(tensors.output, reading);
}
