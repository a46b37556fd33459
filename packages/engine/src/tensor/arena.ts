import type { Kernels } from './kernels.js';
import type { Floats, Integers } from './memory.js';

/** Memories start at multiples of this many numbers (256 bytes): whole cache lines, and where a GPU binds memory. */
const ALIGNMENT = 64;
/** The least numbers of a block. */
const LEAST = 1 << 16;

type HostNumbers = Float32Array | Int32Array;
type Written<Arrays extends readonly HostNumbers[]> = {
  -readonly [At in keyof Arrays]: Arrays[At] extends Float32Array ? Floats : Integers;
};

/** The host's numbers on their way into an arena: the same bytes twice. */
export interface Staged {
  readonly floats: Float32Array;
  readonly integers: Int32Array;
}

/** Buffers of one number a row. */
export interface Columns {
  readonly integers: readonly Integers[];
  readonly floats: readonly Floats[];
}

/**
 * Working memory for one pass: buffers are taken one after another and all given back at once by `reset`. After the
 * first pass of the largest size nothing is allocated any more. Contents are undefined until written.
 */
export class Arena {
  readonly #kernels: Kernels;
  #blocks: Floats[] = [];
  #block = 0;
  #used = 0;
  #total = 0;
  #grown = false;
  #staged: Staged = { floats: new Float32Array(), integers: new Int32Array() };

  constructor(kernels: Kernels) {
    this.#kernels = kernels;
  }

  take(length: number): Floats {
    const padded = aligned(length);
    let block = this.#blocks[this.#block];
    while (block === undefined || this.#used + padded > block.length) {
      if (block !== undefined) {
        this.#block++;
        this.#used = 0;
      }
      if (this.#blocks.length <= this.#block) {
        // A device has no memory to spare; a process gets only the pages that it touches.
        const { adapter, mostNumbers = Number.POSITIVE_INFINITY } = this.#kernels;
        const reserve = adapter === undefined ? this.#total : Math.min(this.#total / 8, mostNumbers);
        const size = Math.max(padded, LEAST, aligned(reserve));
        this.#blocks.push(this.#kernels.allocate(size));
        this.#total += size;
        this.#grown = true;
      }
      block = this.#blocks[this.#block];
    }
    const start = this.#used;
    this.#used += padded;
    return block.subarray(start, start + length);
  }

  takeIntegers(length: number): Integers {
    return this.#kernels.integersIn(this.take(length));
  }

  /** Buffers that hold the numbers of some arrays of the host, which come there in one write. */
  takeWritten<const Arrays extends readonly HostNumbers[]>(arrays: Arrays): Written<Arrays> {
    const total = arrays.reduce((sum, { length }) => sum + aligned(length), 0);
    const all = this.#takeStaged(total, ({ floats, integers }) => {
      let at = 0;
      for (const array of arrays) {
        if (array instanceof Float32Array) floats.set(array, at);
        else integers.set(array, at);
        at += aligned(array.length);
      }
    });
    let end = 0;
    return arrays.map((array) => {
      const start = end;
      end += aligned(array.length);
      const memory = all.subarray(start, start + array.length);
      return array instanceof Float32Array ? memory : this.#kernels.integersIn(memory);
    }) as Written<Arrays>;
  }

  /**
   * Buffers of `rows` numbers each, first the integers, then the floats, which come from the host in one write.
   * @param fill Writes all columns into the staged memory, as integers or as floats: both are views of the same bytes.
   *   Column n begins at n · `stride`
   */
  takeColumns(
    rows: number,
    count: { readonly integers: number; readonly floats: number },
    fill: (staged: Staged, stride: number) => void,
  ): Columns {
    const stride = aligned(rows);
    const first = count.integers * stride;
    const all = this.#takeStaged(first + count.floats * stride, (staged) => fill(staged, stride));
    const ofIntegers = this.#kernels.integersIn(all);
    const [integers, floats]: [Integers[], Floats[]] = [[], []];
    for (let at = 0; at < first; at += stride) integers.push(ofIntegers.subarray(at, at + rows));
    for (let at = first; at < all.length; at += stride) floats.push(all.subarray(at, at + rows));
    return { integers, floats };
  }

  #takeStaged(length: number, fill: (staged: Staged) => void): Floats {
    if (this.#staged.floats.length < length) {
      const floats = new Float32Array(length);
      this.#staged = { floats, integers: new Int32Array(floats.buffer) };
    }
    fill(this.#staged);
    const all = this.take(length);
    this.#kernels.write(all, this.#staged.floats.subarray(0, length));
    return all;
  }

  /**
   * Gives all buffers back. On a device the blocks that a pass has added become one, or as few as it has as large. A
   * process keeps them: it would hold both until the next collection of garbage.
   */
  reset(): void {
    this.#block = 0;
    this.#used = 0;
    if (this.#grown && this.#blocks.length > 1 && this.#kernels.adapter !== undefined) {
      for (const block of this.#blocks.splice(0)) this.#kernels.free(block);
      const { mostNumbers = this.#total } = this.#kernels;
      for (let left = this.#total; left > 0; left -= mostNumbers)
        this.#blocks.push(this.#kernels.allocate(Math.min(left, mostNumbers)));
    }
    this.#grown = false;
  }
}

const aligned = (length: number) => Math.ceil(length / ALIGNMENT) * ALIGNMENT;
