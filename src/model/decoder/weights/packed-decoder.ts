import type { DecoderConfig } from '../../../contract/architecture.js';
import type { MatrixKind } from '../../../tensor/kernel-arguments.js';
import type { WeightMemory } from '../../../tensor/memory.js';
import type { Products } from '../../../tensor/products.js';
import { type DecoderTensors, MATRICES, type Matrix, matrixShapes } from './decoder-tensors.js';

type Shape = readonly [number, number];

/** A decoder's matrices in the form that products read. */
export class PackedDecoder {
  readonly layers: readonly Readonly<Record<Matrix, WeightMemory>>[];
  /** The matrix from the normed stream [width] to logits [vocabSize]. */
  readonly head: WeightMemory;
  /** The widths from which and to which each matrix leads. */
  readonly shapes: Readonly<Record<Matrix | 'head', Shape>>;
  readonly #products: Products;
  readonly #backward: boolean;

  /** @param backward true packs the transposes, through which gradients flow from outputs to inputs. */
  constructor(products: Products, config: DecoderConfig, kind: MatrixKind, backward: boolean) {
    const { qkv, attentionOut, gateUp, down } = matrixShapes(config);
    const shape = ({ inputs, outputs }: { inputs: number; outputs: number }): Shape =>
      backward ? [outputs, inputs] : [inputs, outputs];
    this.#products = products;
    this.#backward = backward;
    this.shapes = {
      qkv: shape(qkv),
      attentionOut: shape(attentionOut),
      gateUp: shape(gateUp),
      down: shape(down),
      head: shape({ inputs: config.width, outputs: config.vocabSize }),
    };
    const room = (matrix: Matrix | 'head') => products.allocate(...this.shapes[matrix], kind);
    this.layers = Array.from({ length: config.layers }, () => ({
      qkv: room('qkv'),
      attentionOut: room('attentionOut'),
      gateUp: room('gateUp'),
      down: room('down'),
    }));
    this.head = room('head');
  }

  pack(tensors: DecoderTensors): void {
    const pack = (packed: WeightMemory, weight: WeightMemory, matrix: Matrix | 'head', transpose: boolean) =>
      this.#products.pack(packed, weight, ...this.shapes[matrix], transpose);
    this.layers.forEach((layer, i) => {
      const weights = tensors.layers[i];
      if (weights === undefined) return;
      for (const matrix of MATRICES) pack(layer[matrix], weights[matrix], matrix, this.#backward);
    });
    // `output` is stored as [vocabSize, width], the head's transpose.
    pack(this.head, tensors.output, 'head', !this.#backward);
  }
}
