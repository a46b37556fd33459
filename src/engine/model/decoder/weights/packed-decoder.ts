import type { DecoderConfig } from '../../../contract/architecture.js';
import type { WeightMemory } from '../../../tensor/memory.js';
import type { HeldMatrix, Products } from '../../../tensor/products.js';
import { type DecoderTensors, type Matrix, matrixShapes } from './decoder-tensors.js';

type Shape = readonly [number, number];

/** A decoder's matrices in the form that products read. */
export class PackedDecoder {
  readonly layers: readonly Readonly<Record<Matrix, WeightMemory>>[];
  /** The matrix from the normed stream [width] to logits [vocabSize]. */
  readonly head: WeightMemory;
  /** The widths of each matrix: inputs and outputs in its direction. */
  readonly shapes: Readonly<Record<Matrix | 'head', Shape>>;
  readonly #held: HeldMatrix[] = [];

  /** @param backward true holds the transposes, through which gradients flow from outputs to inputs. */
  constructor(products: Products, config: DecoderConfig, tensors: DecoderTensors<WeightMemory>, backward: boolean) {
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
    const hold = (weight: WeightMemory, matrix: Matrix | 'head', transpose: boolean) => {
      const [inputs, outputs] = this.shapes[matrix];
      const held = products.hold({ weight, inputs, outputs, transpose });
      this.#held.push(held);
      return held.form;
    };
    this.layers = tensors.layers.map((layer) => ({
      qkv: hold(layer.qkv, 'qkv', backward),
      attentionOut: hold(layer.attentionOut, 'attentionOut', backward),
      gateUp: hold(layer.gateUp, 'gateUp', backward),
      down: hold(layer.down, 'down', backward),
    }));
    // `output` is stored as [vocabSize, width], the head's transpose.
    this.head = hold(tensors.output, 'head', !backward);
  }

  pack(): void {
    for (const held of this.#held) held.pack();
  }
}
