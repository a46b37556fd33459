import type { AdapterSettings, DecoderConfig } from '../../../contract/architecture.js';
import { ArgumentError } from '../../../core/errors.js';
import type { Kernels } from '../../../tensor/kernels.js';
import { type AdapterTensors, adapterParameterCount, adapterTensors } from './adapter-tensors.js';
import {
  bfloat16Tensors,
  type DecoderTensors,
  decoderTensors,
  type FlatTensors,
  parameterCount,
} from './decoder-tensors.js';
import { PackedAdapter } from './packed-adapter.js';
import { type MatrixKind, PackedDecoder } from './packed-decoder.js';

/**
 * Tensors with their packed forms, which passes read; they are packed again when a pass needs them and they have
 * changed.
 */
class Weights<Tensors, Packed extends { pack(tensors: Tensors): void }> {
  readonly tensors: Tensors;
  readonly #create: (backward: boolean) => Packed;
  readonly #packed: { forward?: Packed; backward?: Packed } = {};
  readonly #current = { forward: false, backward: false };

  constructor(tensors: Tensors, create: (backward: boolean) => Packed) {
    this.tensors = tensors;
    this.#create = create;
  }

  /** Must be called after writing to `tensors`. */
  changed(): void {
    this.#current.forward = false;
    this.#current.backward = false;
  }

  /** The packed form from inputs to outputs. */
  get forward(): Packed {
    return this.#get('forward');
  }

  /** The packed form that leads gradients from outputs to inputs. A model that only scores never allocates it. */
  get backward(): Packed {
    return this.#get('backward');
  }

  #get(direction: 'forward' | 'backward'): Packed {
    this.#packed[direction] ??= this.#create(direction === 'backward');
    const packed = this.#packed[direction];
    if (!this.#current[direction]) packed.pack(this.tensors);
    this.#current[direction] = true;
    return packed;
  }
}

/** A whole decoder's weights in float32, as training needs them. */
export class DecoderWeights extends Weights<FlatTensors, PackedDecoder> {
  readonly config: DecoderConfig;

  constructor(kernels: Kernels, config: DecoderConfig) {
    const tensors = decoderTensors(config, kernels.allocate(parameterCount(config)));
    super(tensors, (backward) => new PackedDecoder(kernels, config, 'float32', backward));
    this.config = config;
  }
}

/**
 * The weights of a decoder that nothing trains, with the matrices in bfloat16: half the memory, and every result has
 * the same bits.
 */
class Bfloat16Weights extends Weights<DecoderTensors<Uint16Array>, PackedDecoder> {
  readonly config: DecoderConfig;

  constructor(kernels: Kernels, config: DecoderConfig) {
    super(bfloat16Tensors(kernels, config), (backward) => new PackedDecoder(kernels, config, 'bfloat16', backward));
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
    super(adapterTensors(config, settings, flat), (backward) => new PackedAdapter(kernels, config, settings, backward));
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
  readonly flat: Float32Array; // [parameters]
  readonly decoder?: DecoderTensors<Float32Array>;
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
