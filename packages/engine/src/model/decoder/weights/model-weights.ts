import type { AdapterSettings, DecoderConfig, Precision } from '../../../contract/architecture.js';
import { ArgumentError, BackendError } from '../../../errors.js';
import type { Kernels } from '../../../tensor/kernels.js';
import type { Floats } from '../../../tensor/memory.js';
import { type Products, productsIn, unpack } from '../../../tensor/products.js';
import { type AdapterTensors, adapterParameterCount, adapterTensors } from './adapter-tensors.js';
import {
  type BaseKind,
  type BlockFormats,
  type BlockMatrices,
  blockMatrices,
  type DecoderTensors,
  decoderTensors,
  type FlatTensors,
  MATRICES,
  parameterCount,
  separateTensors,
  tensorsOverBlocks,
} from './decoder-tensors.js';
import { PackedAdapter } from './packed-adapter.js';
import { type LayerMatrixShapes, PackedDecoder } from './packed-decoder.js';

/** From inputs to outputs, or back. */
type Direction = 'forward' | 'backward';

/**
 * Tensors with their packed forms, which passes read: one for each direction and precision in use. A pass packs them
 * again if the tensors have changed.
 */
class Weights<Tensors, Packed extends { pack(): void }> {
  readonly tensors: Tensors;
  readonly #kernels: Kernels;
  readonly #create: (products: Products, backward: boolean) => Packed;
  readonly #packed = new Map<`${Direction} ${Precision}`, { readonly form: Packed; current: boolean }>();

  constructor(kernels: Kernels, tensors: Tensors, create: (products: Products, backward: boolean) => Packed) {
    this.#kernels = kernels;
    this.tensors = tensors;
    this.#create = create;
  }

  /** Must be called after writing to `tensors`. */
  changed(): void {
    for (const packed of this.#packed.values()) packed.current = false;
  }

  /**
   * The packed form from inputs to outputs, or the one that leads gradients from outputs to inputs. A model that only
   * scores never allocates the latter.
   */
  packed(direction: Direction, precision: Precision): Packed {
    const key = `${direction} ${precision}` as const;
    let packed = this.#packed.get(key);
    if (packed === undefined) {
      const form = this.#create(productsIn(precision, this.#kernels), direction === 'backward');
      packed = { form, current: false };
      this.#packed.set(key, packed);
    }
    if (!packed.current) packed.form.pack();
    packed.current = true;
    return packed.form;
  }
}

/** A whole decoder's weights. Policies that adapt a base all refer to one of these. */
export class BaseWeights<Tensors extends DecoderTensors = DecoderTensors> extends Weights<Tensors, PackedDecoder> {
  readonly config: DecoderConfig;

  constructor(kernels: Kernels, config: DecoderConfig, tensors: Tensors, blocks?: BlockMatrices) {
    const create = (products: Products, backward: boolean) =>
      new PackedDecoder(kernels, products, config, tensors, backward, blocks);
    super(kernels, tensors, create);
    this.config = config;
  }
}

/** A whole decoder's weights in float32, as training needs them. */
export class DecoderWeights extends BaseWeights<FlatTensors> {
  /** @param flat Memory for the weights, [parameters]. Default: their own */
  constructor(kernels: Kernels, config: DecoderConfig, flat = kernels.allocate(parameterCount(config))) {
    super(kernels, config, decoderTensors(config, flat));
  }
}

/**
 * The weights of a decoder that nothing trains, in float32 on the processor. Once products can read the matrices, their
 * plain form is given up; the embedding stays, since its rows are looked up. A matrix that is read afterwards is a
 * copy, which is valid until the next one is read.
 */
class FrozenWeights extends BaseWeights<DecoderTensors<Floats>> {
  readonly #own: Kernels;
  #released = false;

  constructor(kernels: Kernels, config: DecoderConfig) {
    super(
      kernels,
      config,
      separateTensors(kernels, config, (length) => kernels.allocate(length)),
    );
    this.#own = kernels;
  }

  override packed(direction: Direction, precision: Precision): PackedDecoder {
    const packed = super.packed(direction, precision);
    if (direction === 'forward' && precision === 'float32' && !this.#released) this.#release(packed);
    return packed;
  }

  #release({ layers, shapes }: PackedDecoder): void {
    this.#released = true;
    const most = Math.max(...shapes.flatMap((each) => MATRICES.map((matrix) => each[matrix][0] * each[matrix][1])));
    let copy: Float32Array | undefined;
    this.tensors.layers.forEach((layer, l) => {
      for (const matrix of MATRICES) {
        const [inputs, outputs] = (shapes[l] as LayerMatrixShapes)[matrix];
        const form = layers[l]?.[matrix] as Float32Array;
        const get = () => {
          copy ??= this.#own.allocate(most) as Float32Array;
          const values = copy.subarray(0, inputs * outputs);
          unpack(this.#own, values, form, { inputs, outputs });
          return values;
        };
        Object.defineProperty(layer, matrix, { get });
      }
    });
  }
}

/** @throws BackendError for a policy in int8 whose base is not in blocks */
export function requireBlocks(name: string, precision: Precision, inBlocks: boolean): void {
  if (precision === 'int8' && !inBlocks)
    throw new BackendError(
      `'${name}' is in int8: expected an adapter, or a model that is not trained, on a GGUF file whose matrices are ` +
        'in Q8_0, Q4_0 or Q4_1, on the processor',
    );
}

/**
 * The weights of a decoder that nothing trains, with the matrices in blocks. Products read them as they are. A matrix
 * that is read from `tensors` is a copy in float32, in the order of all decoders.
 */
export class BlockWeights extends BaseWeights<DecoderTensors<Floats>> {
  readonly matrices: BlockMatrices;

  constructor(kernels: Kernels, config: DecoderConfig, formats: BlockFormats) {
    const matrices = blockMatrices(kernels, config, formats);
    super(kernels, config, tensorsOverBlocks(kernels, config, matrices), matrices);
    this.matrices = matrices;
  }
}

/** Allocates the weights of a decoder that nothing trains, all 0. Kernels of devices have blocks in float32. */
export function baseWeights(kernels: Kernels, config: DecoderConfig, kind: BaseKind): BaseWeights {
  // Matrices in bfloat16 take half the memory, and every result has the same bits.
  if (kind === 'bfloat16')
    return new BaseWeights(
      kernels,
      config,
      separateTensors(kernels, config, (length) => kernels.allocateBfloat16(length)),
    );
  if (kind !== 'float32' && kernels.blockLinear !== undefined) return new BlockWeights(kernels, config, kind);
  // A module's memory gives nothing back, and a device's products read matrices as they are.
  const collected = kernels.name === 'native' || kernels.name === 'reference';
  return new (collected ? FrozenWeights : DecoderWeights)(kernels, config);
}

export class AdapterWeights extends Weights<AdapterTensors, PackedAdapter> {
  readonly settings: AdapterSettings;

  /** @param flat Memory for the weights, [parameters]. Default: their own */
  constructor(
    kernels: Kernels,
    config: DecoderConfig,
    settings: AdapterSettings,
    flat = kernels.allocate(adapterParameterCount(config, settings)),
  ) {
    const tensors = adapterTensors(config, settings, flat);
    const create = (products: Products, backward: boolean) =>
      new PackedAdapter(kernels, products, { config, settings, tensors }, backward);
    super(kernels, tensors, create);
    this.settings = settings;
  }
}

/** The adapters of a policy's agents, by the agents' names in the order of the policy's memory. */
export type AdaptersByAgent = ReadonlyMap<string, AdapterWeights>;

/** A trunk and the adapters of its agents in one buffer: trunk, then the adapters in order. All of it is trained. */
export class TrunkWeights {
  readonly tensors: { readonly flat: Floats };
  readonly trunk: DecoderWeights;
  readonly adapters: AdaptersByAgent;

  constructor(kernels: Kernels, { trunk: config, agents, adapter }: TrunkShape) {
    const [size, each] = [parameterCount(config), adapterParameterCount(config, adapter)];
    const flat = kernels.allocate(size + agents.length * each);
    this.tensors = { flat };
    this.trunk = new DecoderWeights(kernels, config, flat.subarray(0, size));
    this.adapters = new Map(
      agents.map((agent, i) => {
        const memory = flat.subarray(size + i * each, size + (i + 1) * each);
        return [agent, new AdapterWeights(kernels, config, adapter, memory)];
      }),
    );
  }

  /** Must be called after writing to the weights. */
  changed(): void {
    this.trunk.changed();
    for (const adapter of this.adapters.values()) adapter.changed();
  }
}

export interface TrunkShape {
  readonly trunk: DecoderConfig;
  readonly agents: readonly string[];
  readonly adapter: AdapterSettings;
}

/**
 * The source of a policy's weights: a config for a new decoder, a new trunk with adapters of agents, an adapter on a
 * base, or a base that only scores.
 */
export type ModelSource =
  | DecoderConfig
  | TrunkShape
  | { readonly base: BaseWeights; readonly adapter?: AdapterSettings | undefined };

export interface ModelWeights {
  readonly decoder: BaseWeights;
  /** One adapter for all rows. A trunk with adapters of agents has none here: see `trained`. */
  readonly adapter: AdapterWeights | undefined;
  /** The weights that are trained; undefined for a base that only scores. */
  readonly trained: TrainedWeights | undefined;
}

export type TrainedWeights = DecoderWeights | AdapterWeights | TrunkWeights;

export function modelWeights(kernels: Kernels, source: ModelSource): ModelWeights {
  if ('trunk' in source) {
    const trained = new TrunkWeights(kernels, source);
    return { decoder: trained.trunk, adapter: undefined, trained };
  }
  if (!('base' in source)) {
    const decoder = new DecoderWeights(kernels, source);
    return { decoder, adapter: undefined, trained: decoder };
  }
  const { base } = source;
  if (source.adapter === undefined) return { decoder: base, adapter: undefined, trained: undefined };
  const adapter = new AdapterWeights(kernels, base.config, source.adapter);
  return { decoder: base, adapter, trained: adapter };
}

/** The trained weights. @throws ArgumentError for a model without any */
export function trainedWeights({ trained }: ModelWeights): TrainedWeights {
  if (trained === undefined) throw new ArgumentError('a frozen model has no weights of its own to train');
  return trained;
}

/** A gradient: of all of a decoder's tensors, of an adapter's alone, or of a trunk with the adapters of its agents. */
export interface Gradient {
  readonly flat: Floats; // [parameters]
  readonly decoder?: DecoderTensors<Floats>;
  /** The gradient of the adapter that serves all rows of a pass. */
  readonly adapter?: AdapterTensors;
  readonly adapters?: ReadonlyMap<string, AdapterTensors>;
}

/** A gradient for the trained weights, all 0. */
export function zeroGradient(kernels: Kernels, weights: ModelWeights): Gradient {
  const flat = kernels.allocate(trainedWeights(weights).tensors.flat.length);
  return { flat, ...tensorsIn(weights, flat) };
}

/** The tensors of trained weights in a buffer of their size, such as a gradient or a copy. */
export function tensorsIn<F extends Floats>(
  weights: ModelWeights,
  flat: F,
): {
  readonly decoder?: FlatTensors<F>;
  readonly adapter?: AdapterTensors<F>;
  readonly adapters?: ReadonlyMap<string, AdapterTensors<F>>;
} {
  const { config } = weights.decoder;
  const { trained } = weights;
  if (trained instanceof AdapterWeights) return { adapter: adapterTensors(config, trained.settings, flat) };
  if (!(trained instanceof TrunkWeights)) return { decoder: decoderTensors(config, flat) };
  let end = parameterCount(config);
  const decoder = decoderTensors(config, flat.subarray(0, end) as F);
  const adapters = [...trained.adapters].map(([agent, { settings, tensors }]) => {
    const start = end;
    end += tensors.flat.length;
    return [agent, adapterTensors(config, settings, flat.subarray(start, end) as F)] as const;
  });
  return { decoder, adapters: new Map(adapters) };
}
