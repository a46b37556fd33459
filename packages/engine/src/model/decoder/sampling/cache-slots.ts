import { ArgumentError } from '../../../errors.js';

/** One place in the key/value cache and the tokens whose keys and values it holds (positions 0..tokens.length - 1). */
export interface Slot {
  readonly index: number;
  /** The policy that computed the keys and values; another policy's values for the same tokens differ. */
  owner: string | undefined;
  tokens: number[];
  busy: boolean;
  /** A counter of uses, so that the least recently used slot is overwritten first. */
  lastUsed: number;
}

/**
 * The slots of a cache. A freed slot keeps its contents until it is needed, so that a prompt that begins like an
 * earlier one (a sibling's, or the conversation so far) need not be computed again: keys and values of equal prefixes
 * have equal bits.
 */
export class CacheSlots {
  readonly #slots: Slot[];
  #clock = 0;

  constructor(count: number) {
    if (count < 1) throw new ArgumentError(`a cache needs at least one slot, got ${count}`);
    this.#slots = Array.from({ length: count }, (_, index) => ({
      index,
      owner: undefined,
      tokens: [],
      busy: false,
      lastUsed: 0,
    }));
  }

  get count(): number {
    return this.#slots.length;
  }

  get free(): number {
    return this.#slots.reduce((n, slot) => n + (slot.busy ? 0 : 1), 0);
  }

  /**
   * Takes a slot for a prompt of `owner`. `source` is the slot of the same owner that shares the longest prefix with
   * it, `shared` that prefix's length (at most prompt.length - 1, since the last token is always computed to get its
   * logits). `slot` may be `source` itself; otherwise the caller copies. Undefined when all slots are busy.
   */
  take(prompt: readonly number[], owner: string): { slot: Slot; source: Slot; shared: number } | undefined {
    let source: Slot | undefined;
    let shared = -1;
    let oldest: Slot | undefined;
    for (const slot of this.#slots) {
      const length = slot.owner === owner ? commonPrefix(slot.tokens, prompt) : 0;
      if (length > shared || (length === shared && !slot.busy && source?.busy === true)) {
        source = slot;
        shared = length;
      }
      if (!slot.busy && (oldest === undefined || slot.lastUsed < oldest.lastUsed)) oldest = slot;
    }
    if (source === undefined || oldest === undefined) return undefined;
    // Reusing the source itself saves the copy, and loses no prefix when the prompt continues all that the slot holds.
    const slot = !source.busy && shared === source.tokens.length ? source : oldest;
    if (slot.owner !== owner) slot.tokens = [];
    slot.owner = owner;
    slot.busy = true;
    slot.lastUsed = ++this.#clock;
    return { slot, source, shared: Math.min(shared, prompt.length - 1) };
  }

  release(slot: Slot): void {
    slot.busy = false;
    slot.lastUsed = ++this.#clock;
  }

  forget(owner: string): void {
    for (const slot of this.#slots) if (slot.owner === owner) slot.tokens = [];
  }
}

export function commonPrefix(a: readonly number[], b: readonly number[]): number {
  const limit = Math.min(a.length, b.length);
  let n = 0;
  while (n < limit && a[n] === b[n]) n++;
  return n;
}
