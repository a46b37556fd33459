/**
 * The mapping between the engine's tensors and Hugging Face's. The engine stores a linear layer as [inputs, outputs],
 * with the layers that read the same input side by side; Hugging Face stores each as [outputs, inputs]. Both rotate
 * halves of a head (not neighbours), so heads have the same order.
 */

import type { DecoderConfig } from '../../contract/architecture.js';
import { ArgumentError } from '../../errors.js';
import type { BlockFormat, BlockMatrix } from '../../tensor/blocks.js';
import type { Floats, WeightMemory } from '../../tensor/memory.js';
import {
  type BlockFormats,
  type BlockMatrices,
  byMatrix,
  type DecoderTensors,
  MATRICES,
  parameterCount,
  tensorsInOrder,
} from '../decoder/weights/decoder-tensors.js';
import {
  convolutionShape,
  EMBEDDING,
  finalNormName,
  type LinearLayer,
  layerNorms,
  OUTPUT,
  projections,
} from './tensor-names.js';
import type { TensorPlace } from './tensor-place.js';

/**
 * The places of a checkpoint's tensors in the engine's buffers; tensors that the decoder lacks are left out.
 * @throws ArgumentError when the sizes of `tensors` do not match `config`
 */
export function decoderPlaces<Matrices extends WeightMemory, Vectors extends Floats>(
  tensors: DecoderTensors<Matrices, Vectors>,
  config: DecoderConfig,
): TensorPlace<Matrices | Vectors>[] {
  requireSize(tensors, config);
  const { width, vocabSize } = config;
  const places: TensorPlace<Matrices | Vectors>[] = [
    { name: EMBEDDING, shape: [vocabSize, width], data: tensors.embedding },
    ...vectorPlaces(tensors, config),
  ];
  if (config.untiedOutput) places.push({ name: OUTPUT, shape: [vocabSize, width], data: tensors.output });
  tensors.layers.forEach((layer, index) => {
    const parts = projections(config, index);
    for (const matrix of MATRICES) places.push(...sideBySide(layer[matrix], parts[matrix]));
  });
  return places;
}

export function vectorPlaces<Vectors extends Floats>(
  tensors: DecoderTensors<WeightMemory, Vectors>,
  config: DecoderConfig,
): TensorPlace<Vectors>[] {
  const { width } = config;
  const places: TensorPlace<Vectors>[] = [{ name: finalNormName(config), shape: [width], data: tensors.finalNorm }];
  tensors.layers.forEach((layer, index) => {
    for (const { norm, name, length } of layerNorms(config, index))
      places.push({ name, shape: [length], data: layer[norm] });
    const parts = projections(config, index);
    places.push(...biases(layer.qkvBias, parts.qkv), ...biases(layer.attentionOutBias, parts.attentionOut));
    const convolution = convolutionShape(config, index);
    if (convolution !== undefined) places.push({ ...convolution, data: layer.convolution, stride: width });
  });
  return places;
}

export interface BlockPlace {
  readonly name: string;
  readonly matrix: BlockMatrix;
  readonly firstOutput: number;
}

export function blockPlaces({ embedding, layers, output }: BlockMatrices, config: DecoderConfig): BlockPlace[] {
  const places: BlockPlace[] = [{ name: EMBEDDING, matrix: embedding, firstOutput: 0 }];
  if (config.untiedOutput) places.push({ name: OUTPUT, matrix: output, firstOutput: 0 });
  layers.forEach((layer, index) => {
    const parts = projections(config, index);
    for (const matrix of MATRICES) {
      let end = 0;
      for (const { name, outputs } of parts[matrix]) {
        places.push({ name: `${name}.weight`, matrix: layer[matrix], firstOutput: end });
        end += outputs;
      }
    }
  });
  return places;
}

/** The formats of a checkpoint's matrices if products can read all of them in blocks; undefined if not. */
export function blockFormats(
  config: DecoderConfig,
  formatOf: (name: string) => BlockFormat | undefined,
): BlockFormats | undefined {
  const common = (names: readonly string[]) => {
    const formats = new Set(names.map(formatOf));
    const [format] = formats;
    return formats.size === 1 ? format : undefined;
  };
  const embedding = formatOf(EMBEDDING);
  const output = config.untiedOutput ? formatOf(OUTPUT) : embedding;
  if (embedding === undefined || output === undefined) return undefined;
  const layers: BlockFormats['layers'][number][] = [];
  for (let index = 0; index < config.layers; index++) {
    const parts = projections(config, index);
    const layer = byMatrix((matrix) => common(parts[matrix].map(({ name }) => `${name}.weight`)));
    if (MATRICES.some((matrix) => layer[matrix] === undefined)) return undefined;
    layers.push(layer as BlockFormats['layers'][number]);
  }
  return { embedding, layers, output };
}

/** The parts of a bias; none if it is empty. */
function biases<Vectors extends Floats>(bias: Vectors, parts: readonly LinearLayer[]): TensorPlace<Vectors>[] {
  if (bias.length === 0) return [];
  let end = 0;
  return parts.map(({ name, outputs }) => {
    end += outputs;
    return { name: `${name}.bias`, shape: [outputs], data: bias.subarray(end - outputs, end) as Vectors };
  });
}

function sideBySide<Matrices extends WeightMemory>(
  matrix: Matrices,
  parts: readonly LinearLayer[],
): TensorPlace<Matrices>[] {
  const stride = totalOutputs(parts);
  let column = 0;
  return parts.map(({ name, outputs, inputs }) => {
    column += outputs;
    const data = matrix.subarray(column - outputs) as Matrices;
    return { name: `${name}.weight`, shape: [outputs, inputs], data, stride };
  });
}

function totalOutputs(parts: readonly LinearLayer[]): number {
  return parts.reduce((sum, { outputs }) => sum + outputs, 0);
}

function requireSize(tensors: DecoderTensors, config: DecoderConfig): void {
  const expected = parameterCount(config);
  const actual = tensorsInOrder(tensors).reduce((sum, { length }) => sum + length, 0);
  if (actual !== expected) throw new ArgumentError(`expected ${expected} parameters, found ${actual}`);
}
