/**
 * Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
 * A draw is a pure function of its key and its counter, so neither the order of batching nor the number of threads can
 * change it.
 */
const M0 = 0xd2511f53;
const M1 = 0xcd9e8d57;
const W0 = 0x9e3779b9;
const W1 = 0xbb67ae85;

/** High 32 bits of the product of two unsigned 32-bit integers. */
function multiplyHigh(a: number, b: number): number {
  const a0 = a & 0xffff;
  const a1 = a >>> 16;
  const b0 = b & 0xffff;
  const b1 = b >>> 16;
  const middle = a1 * b0 + ((a0 * b0) >>> 16);
  const low = (middle & 0xffff) + a0 * b1;
  return (a1 * b1 + Math.floor(middle / 0x10000) + Math.floor(low / 0x10000)) >>> 0;
}

/** The latest block, written in place, because keys and streams produce very many of them. */
const block = new Uint32Array(4);

/** Writes the four words of one Philox block, from a 128-bit counter and a 64-bit key, to `block`. */
function writeBlock(c0: number, c1: number, c2: number, c3: number, k0: number, k1: number): void {
  for (let round = 0; round < 10; round++) {
    const h0 = multiplyHigh(M0, c0);
    const h1 = multiplyHigh(M1, c2);
    const l0 = Math.imul(M0, c0) >>> 0;
    const l1 = Math.imul(M1, c2) >>> 0;
    c0 = (h1 ^ c1 ^ k0) >>> 0;
    c1 = l1;
    c2 = (h0 ^ c3 ^ k1) >>> 0;
    c3 = l0;
    k0 = (k0 + W0) >>> 0;
    k1 = (k1 + W1) >>> 0;
  }
  block[0] = c0;
  block[1] = c1;
  block[2] = c2;
  block[3] = c3;
}

export function philox(
  counter: readonly [number, number, number, number],
  key: readonly [number, number],
): [number, number, number, number] {
  writeBlock(...counter, ...key);
  return [...block] as [number, number, number, number];
}

/** A 64-bit key as two unsigned 32-bit words. */
export type RandomKey = readonly [number, number];

/** A part of a key: a name or a number. The order of the parts is part of the contract. */
export type KeyPart = string | number;

/**
 * Derives a key from its parts (for sampling: seed, phase, step, task, sample, agent, the prompt's digest, and the
 * count of the agent's earlier calls in the episode with that digest).
 * Every 32-bit word of every part is absorbed by one Philox block, strings length-first, so different lists give
 * different keys up to a 64-bit collision.
 */
export function randomKey(...parts: readonly KeyPart[]): RandomKey {
  begin();
  for (const part of parts) {
    if (typeof part === 'number') {
      const [high, low] = float64Words(part);
      absorb(1, high);
      absorb(2, low);
    } else {
      absorb(3, part.length);
      for (let i = 0; i < part.length; i++) absorb(4, part.charCodeAt(i));
    }
  }
  return [block[0] as number, block[1] as number];
}

/**
 * The digest of token ids: 64 bits, equal for equal lists and, except for collisions, different for different lists. It
 * distinguishes prompts; it does not protect against collisions made on purpose.
 */
export function digestOfIds(ids: readonly number[]): RandomKey {
  begin();
  absorb(5, ids.length);
  for (const id of ids) absorb(6, id);
  return [block[0] as number, block[1] as number];
}

function begin(): void {
  block[0] = 0x243f6a88;
  block[1] = 0x85a308d3;
}

/** Mixes one more word into the key in `block`. */
function absorb(tag: number, word: number): void {
  writeBlock(word >>> 0, tag, 0, 0, block[0] as number, block[1] as number);
}

const float64 = new DataView(new ArrayBuffer(8));
function float64Words(value: number): [number, number] {
  float64.setFloat64(0, value);
  return [float64.getUint32(0), float64.getUint32(4)];
}

/**
 * Draw number `index` of the stream named by `key`: uniform in [0, 1) with 24 bits, exactly representable in float32.
 */
export function uniformAt(key: RandomKey, index: number): number {
  writeBlock(index >>> 0, 0, 0, 1, key[0], key[1]);
  return ((block[0] as number) >>> 8) * 2 ** -24;
}

/** A stream of draws, for code that consumes numbers one after another. */
export class RandomStream {
  readonly #parts: readonly KeyPart[];
  /** The key and the latest block exist from the first draw on: many episodes have a stream and draw nothing. */
  #key: RandomKey | undefined;
  #words: Uint32Array | undefined;
  #blocks = 0;
  #left = 0;

  constructor(...parts: readonly KeyPart[]) {
    this.#parts = parts;
  }

  /** Draws an unsigned 32-bit integer. */
  word(): number {
    if (this.#left === 0) {
      this.#key ??= randomKey(...this.#parts);
      writeBlock(this.#blocks >>> 0, Math.floor(this.#blocks / 2 ** 32), 0, 2, this.#key[0], this.#key[1]);
      this.#words ??= new Uint32Array(4);
      this.#words.set(block);
      this.#blocks++;
      this.#left = 4;
    }
    return (this.#words as Uint32Array)[4 - this.#left--] as number;
  }

  /** Draws a number uniform in [0, 1) with 53 bits. */
  uniform(): number {
    return (this.word() * 2 ** 21 + (this.word() >>> 11)) * 2 ** -53;
  }

  /** Draws an integer uniform in [low, high]. */
  integer(low: number, high: number): number {
    return low + Math.floor(this.uniform() * (high - low + 1));
  }

  /** Draws one of `items`. */
  pick<T>(items: readonly [T, ...T[]]): T {
    return items[this.integer(0, items.length - 1)] ?? items[0];
  }

  /** Draws `true` with probability p. */
  chance(p: number): boolean {
    return this.uniform() < p;
  }

  /** Draws a standard normal number (Box-Muller). */
  normal(): number {
    const radius = Math.sqrt(-2 * Math.log(1 - this.uniform()));
    return radius * Math.cos(2 * Math.PI * this.uniform());
  }
}

/** A permutation of 0..n-1 (Fisher-Yates), a pure function of its key parts. */
export function permutation(n: number, ...parts: readonly KeyPart[]): Uint32Array {
  const stream = new RandomStream(...parts);
  const order = Uint32Array.from({ length: n }, (_, i) => i);
  for (let i = n - 1; i > 0; i--) {
    const j = stream.integer(0, i);
    const a = order[i] as number;
    order[i] = order[j] as number;
    order[j] = a;
  }
  return order;
}
