import type { DecoderConfig } from '../../../contract/architecture.js';
import type { Kernels } from '../../../tensor/kernels.js';
import type { Floats } from '../../../tensor/memory.js';
import { convolves, layersOf } from '../weights/decoder-tensors.js';
import { CacheSlots } from './cache-slots.js';

/** The most requests that are decoded together. */
const MAX_SLOTS = 128;
/** The most bytes of the cache, as long as one slot fits. */
const CACHE_BYTES = 512 * 2 ** 20;
/** The smallest slot in positions; sizes double from there up to the context. */
const LEAST_CAPACITY = 64;

/**
 * Slots for sequences of at most `longest` tokens, and their positions.
 * @param floatsOf The numbers that one slot takes in all layers
 */
export function cacheShape(
  { context }: DecoderConfig,
  longest: number,
  floatsOf: (capacity: number) => number,
): { readonly capacity: number; readonly slots: number } {
  let doubled = LEAST_CAPACITY;
  while (doubled < longest) doubled *= 2;
  const capacity = Math.min(doubled, context);
  const affordable = Math.floor(CACHE_BYTES / (4 * floatsOf(capacity)));
  return { capacity, slots: Math.max(1, Math.min(MAX_SLOTS, affordable)) };
}

/**
 * The numbers that one slot takes in all layers.
 * @param keys The numbers of its keys in a layer that attends
 */
export function slotFloats(config: DecoderConfig, capacity: number, keys: number): number {
  const convolutions = config.convolution?.layers.length ?? 0;
  return (config.layers - convolutions) * 2 * keys + convolutions * capacity * config.width;
}

/**
 * The keys and values of the sequences that a sampler decodes; of a layer that convolves, the products that its windows
 * read. The products of all positions are kept, so that any prefix can be shared and copied as keys and values are. The
 * slots have room for the longest of the sequences instead of for the model's context: many short ones are decoded
 * together, or few long ones.
 */
export class KeyValueCache {
  readonly #kernels: Kernels;
  readonly #config: DecoderConfig;
  #capacity = 0;
  #slots = new CacheSlots(1);
  // One a layer; `values` of a layer that convolves is empty, and `keys` has its products.
  #keys: readonly Floats[] = [];
  #values: readonly Floats[] = [];

  constructor(kernels: Kernels, config: DecoderConfig) {
    this.#kernels = kernels;
    this.#config = config;
  }

  get capacity(): number {
    return this.#capacity;
  }

  get slots(): CacheSlots {
    return this.#slots;
  }

  keys(layer: number): Floats {
    return this.#keys[layer] as Floats;
  }

  values(layer: number): Floats {
    return this.#values[layer] as Floats;
  }

  /** The products B · x of a layer that convolves: [slots, capacity, width]. */
  products(layer: number): Floats {
    return this.#keys[layer] as Floats;
  }

  /**
   * Enlarges the slots for sequences of these lengths, or shrinks them if there are too few slots for all sequences.
   * Slots that change lose their content, so none may be busy.
   */
  fit(lengths: readonly number[]): void {
    const config = this.#config;
    const keysOf = (capacity: number) => this.#kernels.cacheSlotSize({ capacity, heads: config });
    const floatsOf = (capacity: number) => slotFloats(config, capacity, keysOf(capacity));
    const { capacity: wanted, slots: count } = cacheShape(config, Math.max(...lengths), floatsOf);
    const tooFew = this.#slots.count < Math.min(lengths.length, MAX_SLOTS);
    if (wanted <= this.#capacity && !(wanted < this.#capacity && tooFew)) return;
    this.#capacity = wanted;
    this.#slots = new CacheSlots(count);
    const room = (ofConvolution: number) =>
      layersOf(config).map((layer) =>
        this.#kernels.allocate(count * (convolves(config, layer) ? ofConvolution : keysOf(wanted))),
      );
    this.free();
    this.#keys = room(wanted * config.width);
    this.#values = room(0);
  }

  /** Gives the buffers back; the cache holds nothing until it is fitted again. */
  free(): void {
    for (const buffer of [...this.#keys, ...this.#values]) this.#kernels.free(buffer);
    this.#keys = [];
    this.#values = [];
  }

  copy(from: number, to: number, length: number): void {
    const places = { from, to, length, capacity: this.#capacity };
    this.#keys.forEach((keys, layer) => {
      if (convolves(this.#config, layer))
        this.#kernels.convolutionCopy({ products: keys, ...places, width: this.#config.width });
      else this.#kernels.cacheCopy({ keys, values: this.values(layer), ...places, heads: this.#config });
    });
  }
}
