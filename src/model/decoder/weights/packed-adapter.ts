import type { AdapterSettings, DecoderConfig } from '../../../contract/architecture.js';
import type { Kernels } from '../../../tensor/kernels.js';
import type { Floats, WeightMemory } from '../../../tensor/memory.js';
import type { Products } from '../../../tensor/products.js';
import {
  type AdaptedMatrix,
  type AdapterTensors,
  adaptedMatrices,
  adapterPair,
  spreadBlocks,
} from './adapter-tensors.js';
import type { Matrix } from './decoder-tensors.js';

/** Two matrices in the form that products read: the projection down to n · rank, and the one up again. */
interface PackedPair {
  readonly adapted: AdaptedMatrix;
  readonly down: WeightMemory;
  readonly up: WeightMemory;
}

/**
 * An adapter's matrices in the form that products read: A, then B with alpha / rank folded in; backward, from
 * outputs to inputs, the transposes of B and then of A.
 */
export class PackedAdapter {
  readonly layers: readonly Readonly<Partial<Record<Matrix, PackedPair>>>[];
  readonly settings: AdapterSettings;
  readonly matrices: readonly AdaptedMatrix[];
  readonly #kernels: Kernels;
  readonly #products: Products;
  readonly #backward: boolean;
  /** The block-diagonal B of each matrix, in turn for every layer. */
  readonly #blocks: readonly Floats[];

  constructor(
    kernels: Kernels,
    products: Products,
    config: DecoderConfig,
    settings: AdapterSettings,
    backward: boolean,
  ) {
    this.#kernels = kernels;
    this.#products = products;
    this.settings = settings;
    this.#backward = backward;
    this.matrices = adaptedMatrices(config, settings);
    this.#blocks = this.matrices.map(({ width, outputs }) => kernels.allocate(width * outputs));
    const room = (from: number, to: number) => products.allocate(from, to, 'float32');
    this.layers = Array.from({ length: config.layers }, () =>
      Object.fromEntries(
        this.matrices.map((adapted) => {
          const { matrix, inputs, outputs, width } = adapted;
          const [from, to] = backward ? [outputs, inputs] : [inputs, outputs];
          return [matrix, { adapted, down: room(from, width), up: room(width, to) }];
        }),
      ),
    );
  }

  pack(tensors: AdapterTensors): void {
    const products = this.#products;
    this.layers.forEach((layer, l) => {
      this.matrices.forEach((adapted, m) => {
        const { matrix, inputs, outputs, width } = adapted;
        const { down, up } = layer[matrix] as PackedPair;
        const { A, B } = adapterPair(tensors, l, matrix);
        const blocks = this.#blocks[m] as Floats;
        spreadBlocks(this.#kernels, blocks, adapted, this.settings, B);
        if (this.#backward) {
          products.pack(down, blocks, outputs, width, true);
          products.pack(up, A, width, inputs, true);
        } else {
          products.pack(down, A, inputs, width, false);
          products.pack(up, blocks, width, outputs, false);
        }
      });
    });
  }
}
