import type { DecoderConfig } from '../../../contract/architecture.js';
import type { Kernels } from '../../../tensor/kernels.js';
import type { Floats } from '../../../tensor/memory.js';
import { CacheSlots } from './cache-slots.js';

/** The most requests that are decoded together. */
const MAX_SLOTS = 128;
/** The most bytes of the cache, as long as one slot fits. */
const CACHE_BYTES = 512 * 2 ** 20;
/** The smallest slot in positions; sizes double from there up to the context. */
const LEAST_CAPACITY = 128;

/**
 * Slots for sequences of at most `longest` tokens, and their positions.
 * @param floatsOf The numbers that the keys of one slot take in a layer
 */
export function cacheShape(
  { layers, context }: DecoderConfig,
  longest: number,
  floatsOf: (capacity: number) => number,
): { readonly capacity: number; readonly slots: number } {
  let doubled = LEAST_CAPACITY;
  while (doubled < longest) doubled *= 2;
  const capacity = Math.min(doubled, context);
  const affordable = Math.floor(CACHE_BYTES / (2 * 4 * floatsOf(capacity) * layers));
  return { capacity, slots: Math.max(1, Math.min(MAX_SLOTS, affordable)) };
}

/**
 * The keys and values of the sequences that a sampler decodes. The slots have room for the longest of those instead of
 * for the model's context: many short sequences are decoded together, or few long ones.
 */
export class KeyValueCache {
  readonly #kernels: Kernels;
  readonly #config: DecoderConfig;
  #capacity = 0;
  #slots = new CacheSlots(1);
  #keys: readonly Floats[] = []; // one a layer
  #values: readonly Floats[] = [];

  constructor(kernels: Kernels, config: DecoderConfig) {
    this.#kernels = kernels;
    this.#config = config;
  }

  /** The number of positions in a slot. */
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

  /**
   * Enlarges the slots for sequences of these lengths, or shrinks them if there are too few slots for all sequences.
   * Slots that change lose their content, so none may be busy.
   */
  fit(lengths: readonly number[]): void {
    const { layers } = this.#config;
    const floatsOf = (capacity: number) => this.#kernels.cacheSlotSize({ capacity, heads: this.#config });
    const { capacity: wanted, slots: count } = cacheShape(this.#config, Math.max(...lengths), floatsOf);
    const tooFew = this.#slots.count < Math.min(lengths.length, MAX_SLOTS);
    if (wanted <= this.#capacity && !(wanted < this.#capacity && tooFew)) return;
    const floats = floatsOf(wanted);
    this.#capacity = wanted;
    this.#slots = new CacheSlots(count);
    const room = () => Array.from({ length: layers }, () => this.#kernels.allocate(count * floats));
    this.free();
    this.#keys = room();
    this.#values = room();
  }

  /** Gives the buffers back; the cache holds nothing until it is fitted again. */
  free(): void {
    for (const buffer of [...this.#keys, ...this.#values]) this.#kernels.free(buffer);
    this.#keys = [];
    this.#values = [];
  }

  /** Copies the first positions of one slot to another. */
  copy(from: number, to: number, length: number): void {
    this.#keys.forEach((keys, layer) => {
      this.#kernels.cacheCopy({
        keys,
        values: this.values(layer),
        from,
        to,
        length,
        capacity: this.#capacity,
        heads: this.#config,
      });
    });
  }
}
