import type { DecoderConfig } from '../../../contract/architecture.js';
import type { BlockMatrix } from '../../../tensor/blocks.js';
import { isInBfloat16, type WeightMemory } from '../../../tensor/memory.js';
import type { HeldMatrix, PackedMatrix, Products } from '../../../tensor/products.js';
import { type BlockMatrices, type DecoderTensors, type Matrix, matrixShapes } from './decoder-tensors.js';

type Shape = readonly [number, number];

/** A decoder's matrices in the form that products read. */
export class PackedDecoder {
  readonly layers: readonly Readonly<Record<Matrix, PackedMatrix>>[];
  /** The matrix from the normed stream [width] to logits [vocabSize]. */
  readonly head: PackedMatrix;
  /** The table that tokens are looked up in: [vocabSize, width]. */
  readonly embedding: WeightMemory | BlockMatrix;
  /** The widths of each matrix: inputs and outputs in its direction. */
  readonly shapes: Readonly<Record<Matrix | 'head', Shape>>;
  readonly #held: HeldMatrix[] = [];

  /**
   * @param backward true holds the transposes, through which gradients flow from outputs to inputs.
   * @param blocks The matrices in blocks, if they are. Products in float32 read them as they are
   */
  constructor(
    products: Products,
    config: DecoderConfig,
    tensors: DecoderTensors<WeightMemory>,
    backward: boolean,
    blocks?: BlockMatrices,
  ) {
    const { qkv, attentionOut, gateUp, down } = matrixShapes(config);
    const shape = ({ inputs, outputs }: { inputs: number; outputs: number }): Shape =>
      backward ? [outputs, inputs] : [inputs, outputs];
    this.shapes = {
      qkv: shape(qkv),
      attentionOut: shape(attentionOut),
      gateUp: shape(gateUp),
      down: shape(down),
      head: shape({ inputs: config.width, outputs: config.vocabSize }),
    };
    const kind = blocks === undefined && isInBfloat16(tensors.output) ? 'bfloat16' : 'float32';
    this.embedding = blocks?.embedding ?? tensors.embedding;
    const hold = (
      weightOf: () => WeightMemory,
      matrix: Matrix | 'head',
      transpose: boolean,
      inBlocks: BlockMatrix | undefined,
    ): PackedMatrix => {
      if (inBlocks !== undefined && products.precision === 'float32') return { blocks: inBlocks, transposed: backward };
      const [inputs, outputs] = this.shapes[matrix];
      const stored = {
        // Frozen weights exist as copies of packed ones, which are not held here.
        get weight() {
          return weightOf();
        },
        ...{ inputs, outputs, transpose },
      };
      const held = products.hold(stored, kind);
      this.#held.push(held);
      return held.form;
    };
    this.layers = tensors.layers.map((layer, l) => {
      const held = (matrix: Matrix) => hold(() => layer[matrix], matrix, backward, blocks?.layers[l]?.[matrix]);
      return {
        qkv: held('qkv'),
        attentionOut: held('attentionOut'),
        gateUp: held('gateUp'),
        down: held('down'),
      };
    });
    // `output` is stored as [vocabSize, width], the head's transpose.
    this.head = hold(() => tensors.output, 'head', !backward, blocks?.output);
  }

  pack(): void {
    for (const held of this.#held) held.pack();
  }
}
