import type { DecoderConfig } from '../../../contract/architecture.js';
import type { Arena } from '../../../tensor/arena.js';
import type { BlockMatrix } from '../../../tensor/blocks.js';
import type { Kernels } from '../../../tensor/kernels.js';
import { type Floats, type Integers, isInBfloat16, type WeightMemory } from '../../../tensor/memory.js';
import { embedTokens, type HeldMatrix, type PackedMatrix, type Products } from '../../../tensor/products.js';
import {
  type BlockMatrices,
  byMatrix,
  type DecoderTensors,
  layersOf,
  type Matrix,
  matrixShapes,
} from './decoder-tensors.js';

const NORMS = [
  ...(['attentionNorm', 'feedForwardNorm', 'queryNorm', 'keyNorm'] as const),
  ...(['attentionResultNorm', 'feedForwardResultNorm'] as const),
] as const;

/** The numbers that a layer's norms multiply by. */
export type LayerGains = Readonly<Record<(typeof NORMS)[number], Floats>>;

type Shape = readonly [number, number];

/** The widths of a layer's matrices: inputs and outputs in the direction of a pass. */
export type LayerMatrixShapes = Readonly<Record<Matrix, Shape>>;

export class PackedDecoder {
  readonly layers: readonly Readonly<Record<Matrix, PackedMatrix>>[];
  /** The matrix from the normed stream [width] to logits [vocabSize]. */
  readonly head: PackedMatrix;
  /** The table that tokens are looked up in: [vocabSize, width]. */
  readonly embedding: WeightMemory | BlockMatrix;
  readonly shapes: readonly LayerMatrixShapes[]; // [layers]
  readonly gains: { readonly layers: readonly LayerGains[]; readonly final: Floats };
  readonly #held: Pick<HeldMatrix, 'pack'>[] = [];

  /**
   * @param backward true holds the transposes, through which gradients flow from outputs to inputs.
   * @param blocks The matrices in blocks, if they are. Products in float32 and int8 read them as they are
   */
  constructor(
    kernels: Kernels,
    products: Products,
    config: DecoderConfig,
    tensors: DecoderTensors<WeightMemory>,
    backward: boolean,
    blocks?: BlockMatrices,
  ) {
    const shape = ({ inputs, outputs }: { inputs: number; outputs: number }): Shape =>
      backward ? [outputs, inputs] : [inputs, outputs];
    this.shapes = layersOf(config).map((layer) => {
      const shapes = matrixShapes(config, layer);
      return byMatrix((matrix) => shape(shapes[matrix]));
    });
    const kind = blocks === undefined && isInBfloat16(tensors.output) ? 'bfloat16' : 'float32';
    this.embedding = blocks?.embedding ?? tensors.embedding;
    const hold = (
      weightOf: () => WeightMemory,
      [inputs, outputs]: Shape,
      transpose: boolean,
      inBlocks: BlockMatrix | undefined,
    ): PackedMatrix => {
      if (inBlocks !== undefined && products.precision !== 'bfloat16')
        return { blocks: inBlocks, transposed: backward };
      const stored = {
        // Frozen weights exist as copies of packed ones, which are not held here.
        get weight() {
          return weightOf();
        },
        inputs,
        outputs,
        transpose,
      };
      const held = products.hold(stored, kind);
      this.#held.push(held);
      return held.form;
    };
    const gainOf = (norm: Floats): Floats => {
      if (!config.offsetNorms) return norm;
      const gain = kernels.allocate(norm.length);
      const pack = () => {
        kernels.fill({ x: gain, value: 1 });
        kernels.add({ out: gain, x: norm, length: norm.length });
      };
      this.#held.push({ pack });
      return gain;
    };
    const gainsOf = (layer: DecoderTensors['layers'][number]) =>
      Object.fromEntries(NORMS.map((norm) => [norm, gainOf(layer[norm])])) as LayerGains;
    this.gains = { layers: tensors.layers.map(gainsOf), final: gainOf(tensors.finalNorm) };
    this.layers = tensors.layers.map((layer, l) => {
      const shapes = this.shapes[l] as LayerMatrixShapes;
      return byMatrix((matrix) => hold(() => layer[matrix], shapes[matrix], backward, blocks?.layers[l]?.[matrix]));
    });
    // `output` is stored as [vocabSize, width], the head's transpose.
    const head = shape({ inputs: config.width, outputs: config.vocabSize });
    this.head = hold(() => tensors.output, head, !backward, blocks?.output);
  }

  pack(): void {
    for (const held of this.#held) held.pack();
  }
}

interface EmbeddedRows {
  readonly kernels: Kernels;
  readonly arena: Arena;
  readonly config: DecoderConfig;
  readonly rows: number;
}

/** Looks up the first residual stream, [rows, width]. */
export function embedRows({
  packed,
  tokens,
  ...given
}: EmbeddedRows & { readonly packed: PackedDecoder; readonly tokens: Integers }): Floats {
  const { kernels, arena, config, rows } = given;
  const stream = arena.take(rows * config.width);
  embedTokens(kernels, { out: stream, table: packed.embedding, tokens, rows, width: config.width });
  return scaledRows(given, stream);
}

/** Rows of the embedding, or of its gradient, times sqrt(width) in float32 if the decoder scales them. */
export function scaledRows({ kernels, arena, config, rows }: EmbeddedRows, from: Floats): Floats {
  if (!config.scaledEmbedding) return from;
  const { width } = config;
  const to = arena.take(rows * width);
  const scale = Math.fround(Math.sqrt(width));
  const strides = { toStride: width, fromStride: width };
  kernels.copyBlock({ to, from, ...strides, rows, columns: width, scale, accumulate: false });
  return to;
}
