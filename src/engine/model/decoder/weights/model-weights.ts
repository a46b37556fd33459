import { ArgumentError } from '../../../../base/errors.js';
import type { AdapterSettings, DecoderConfig, Precision } from '../../../contract/architecture.js';
import type { MatrixKind } from '../../../tensor/kernel-arguments.js';
import type { Kernels } from '../../../tensor/kernels.js';
import type { Bfloat16s, Floats } from '../../../tensor/memory.js';
import { type Products, productsIn } from '../../../tensor/products.js';
import { type AdapterTensors, adapterParameterCount, adapterTensors } from './adapter-tensors.js';
import {
  bfloat16Tensors,
  type DecoderTensors,
  decoderTensors,
  type FlatTensors,
  parameterCount,
} from './decoder-tensors.js';
import { PackedAdapter } from './packed-adapter.js';
import { PackedDecoder } from './packed-decoder.js';

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

/** A whole decoder's weights in float32, as training needs them. */
export class DecoderWeights extends Weights<FlatTensors, PackedDecoder> {
  readonly config: DecoderConfig;

  constructor(kernels: Kernels, config: DecoderConfig) {
    const tensors = decoderTensors(config, kernels.allocate(parameterCount(config)));
    super(kernels, tensors, (products, backward) => new PackedDecoder(products, config, tensors, backward));
    this.config = config;
  }
}

/**
 * The weights of a decoder that nothing trains, with the matrices in bfloat16: half the memory, and every result has
 * the same bits.
 */
class Bfloat16Weights extends Weights<DecoderTensors<Bfloat16s>, PackedDecoder> {
  readonly config: DecoderConfig;

  constructor(kernels: Kernels, config: DecoderConfig) {
    const tensors = bfloat16Tensors(kernels, config);
    super(kernels, tensors, (products, backward) => new PackedDecoder(products, config, tensors, backward));
    this.config = config;
  }
}

/** A whole decoder's weights. Policies that adapt a base all refer to one of these. */
export type BaseWeights = DecoderWeights | Bfloat16Weights;

/** Allocates a decoder's weights, all 0. */
export function baseWeights(kernels: Kernels, config: DecoderConfig, kind: MatrixKind): BaseWeights {
  return kind === 'bfloat16' ? new Bfloat16Weights(kernels, config) : new DecoderWeights(kernels, config);
}

/** An adapter's weights in float32. */
export class AdapterWeights extends Weights<AdapterTensors, PackedAdapter> {
  readonly settings: AdapterSettings;

  constructor(kernels: Kernels, config: DecoderConfig, settings: AdapterSettings) {
    const flat = kernels.allocate(adapterParameterCount(config, settings));
    const tensors = adapterTensors(config, settings, flat);
    const create = (products: Products, backward: boolean) =>
      new PackedAdapter(kernels, products, { config, settings, tensors }, backward);
    super(kernels, tensors, create);
    this.settings = settings;
  }
}

/** The source of a policy's weights: a config for a new decoder, an adapter on a base, or a base that only scores. */
export type ModelSource =
  | DecoderConfig
  | { readonly base: BaseWeights; readonly adapter?: AdapterSettings | undefined };

/** The weights of a model: a decoder, and perhaps an adapter on it. */
export interface ModelWeights {
  readonly decoder: BaseWeights;
  readonly adapter: AdapterWeights | undefined;
  /** The one of the two that is trained; undefined for a base that only scores. */
  readonly trained: DecoderWeights | AdapterWeights | undefined;
}

/** Allocates the weights that are trained. */
export function modelWeights(kernels: Kernels, source: ModelSource): ModelWeights {
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
export function trainedWeights({ trained }: ModelWeights): DecoderWeights | AdapterWeights {
  if (trained === undefined) throw new ArgumentError('a frozen model has no weights of its own to train');
  return trained;
}

/** A gradient: of all of a decoder's tensors, or of an adapter's alone. */
export interface Gradient {
  readonly flat: Floats; // [parameters]
  readonly decoder?: DecoderTensors<Floats>;
  readonly adapter?: AdapterTensors;
}

/** A gradient for the trained weights, all 0. */
export function zeroGradient(kernels: Kernels, weights: ModelWeights): Gradient {
  const flat = kernels.allocate(trainedWeights(weights).tensors.flat.length);
  const { adapter, decoder } = weights;
  const { config } = decoder;
  if (adapter === undefined) return { flat, decoder: decoderTensors(config, flat) };
  return { flat, adapter: adapterTensors(config, adapter.settings, flat) };
}
