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
import { layersOf, type Matrix } from './decoder-tensors.js';

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
  readonly #packs: (() => void)[] = [];

  constructor(kernels: Kernels, products: Products, { config, settings, tensors }: AdapterSource, backward: boolean) {
    this.settings = settings;
    const ofLayers = layersOf(config).map((layer) => adaptedMatrices(config, layer, settings));
    this.matrices = ofLayers.flat();
    // The block-diagonal B of each matrix, in turn for every layer that has it in the same blocks.
    const blocks = new Map<string, Floats>();
    const blocksOf = ({ matrix, width, outputs, parts }: AdaptedMatrix): Floats => {
      const key = [matrix, ...parts.map(({ projection }) => projection)].join(' ');
      const present = blocks.get(key) ?? kernels.allocate(width * outputs);
      blocks.set(key, present);
      return present;
    };
    const pairOf = (adapted: AdaptedMatrix, layer: number): PackedPair => {
      const B = blocksOf(adapted);
      const { matrix, inputs, outputs, width } = adapted;
      const pair = adapterPair(tensors, layer, matrix);
      const ofA = backward
        ? products.hold({ weight: pair.A, inputs: width, outputs: inputs, transpose: true })
        : products.hold({ weight: pair.A, inputs, outputs: width, transpose: false });
      const [from, to] = backward ? [outputs, width] : [width, outputs];
      const ofB = products.allocate(from, to, 'float32');
      this.#packs.push(() => {
        ofA.pack();
        spreadBlocks(kernels, B, adapted, settings, pair.B);
        products.pack({ packed: ofB, weight: B, inputs: from, outputs: to, transpose: backward });
      });
      return backward ? { adapted, down: ofB, up: ofA.form } : { adapted, down: ofA.form, up: ofB };
    };
    this.layers = ofLayers.map((matrices, layer) =>
      Object.fromEntries(matrices.map((adapted) => [adapted.matrix, pairOf(adapted, layer)])),
    );
  }

  pack(): void {
    for (const pack of this.#packs) pack();
  }
}

interface AdapterSource {
  readonly config: DecoderConfig;
  readonly settings: AdapterSettings;
  readonly tensors: AdapterTensors;
}
