import type { DecoderConfig } from '../../core/backend.js';
import type { Kernels } from '../../tensor/kernels.js';
import { type DecoderTensors, qkvWidth } from './parameters.js';

type Matrix = 'qkv' | 'attentionOut' | 'gateUp' | 'down';

/** A decoder's matrices in the form that `Kernels.linear` reads, made anew whenever the weights change. */
export class PackedDecoder {
  readonly layers: readonly Readonly<Record<Matrix, Float32Array>>[];
  /** hidden [width] to logits [vocabSize]. */
  readonly head: Float32Array;
  readonly #kernels: Kernels;
  readonly #shapes: Readonly<Record<Matrix | 'head', readonly [number, number]>>;
  readonly #backward: boolean;

  /** @param backward true packs the transposes, through which gradients flow from outputs to inputs. */
  constructor(kernels: Kernels, config: DecoderConfig, backward: boolean) {
    const { width, heads, headDim, feedForward, vocabSize } = config;
    const shape = (inputs: number, outputs: number): [number, number] =>
      backward ? [outputs, inputs] : [inputs, outputs];
    this.#kernels = kernels;
    this.#backward = backward;
    this.#shapes = {
      qkv: shape(width, qkvWidth(config)),
      attentionOut: shape(heads * headDim, width),
      gateUp: shape(width, 2 * feedForward),
      down: shape(feedForward, width),
      head: shape(width, vocabSize),
    };
    const room = (matrix: Matrix | 'head') => kernels.allocate(kernels.packedSize(...this.#shapes[matrix]));
    this.layers = Array.from({ length: config.layers }, () => ({
      qkv: room('qkv'),
      attentionOut: room('attentionOut'),
      gateUp: room('gateUp'),
      down: room('down'),
    }));
    this.head = room('head');
  }

  pack(tensors: DecoderTensors): void {
    const pack = (packed: Float32Array, weight: Float32Array, matrix: Matrix | 'head', transpose: boolean) =>
      this.#kernels.pack(packed, weight, ...this.#shapes[matrix], transpose);
    this.layers.forEach((layer, i) => {
      const weights = tensors.layers[i];
      if (weights === undefined) return;
      for (const matrix of ['qkv', 'attentionOut', 'gateUp', 'down'] as const)
        pack(layer[matrix], weights[matrix], matrix, this.#backward);
    });
    // Kept as [vocabSize, width], the head's transpose.
    pack(this.head, tensors.output, 'head', !this.#backward);
  }
}
