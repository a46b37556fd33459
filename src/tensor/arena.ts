import type { Kernels } from './kernels.js';

/** Float buffers start at multiples of this many floats (64 bytes), so that kernels meet whole cache lines. */
const ALIGNMENT = 16;

/**
 * Working memory for one pass: buffers are taken one after another and all given back at once by `reset`. After the
 * first pass of the largest size nothing is allocated any more. Contents are undefined until written.
 */
export class Arena {
  readonly #kernels: Kernels;
  #blocks: Float32Array[] = [];
  #block = 0;
  #used = 0;
  #total = 0;

  constructor(kernels: Kernels) {
    this.#kernels = kernels;
  }

  take(length: number): Float32Array {
    const padded = Math.ceil(length / ALIGNMENT) * ALIGNMENT;
    let block = this.#blocks[this.#block];
    while (block === undefined || this.#used + padded > block.length) {
      if (block !== undefined) {
        this.#block++;
        this.#used = 0;
      }
      if (this.#blocks.length <= this.#block) {
        this.#blocks.push(this.#kernels.allocate(Math.max(padded, 1 << 16, this.#total)));
        this.#total += (this.#blocks.at(-1) as Float32Array).length;
      }
      block = this.#blocks[this.#block];
    }
    const start = this.#used;
    this.#used += padded;
    return block.subarray(start, start + length);
  }

  /** A buffer of integers. */
  takeIntegers(length: number): Int32Array {
    const { buffer, byteOffset } = this.take(length);
    return new Int32Array(buffer, byteOffset, length);
  }

  reset(): void {
    if (this.#blocks.length > 1) this.#blocks = [this.#kernels.allocate(this.#total)];
    this.#block = 0;
    this.#used = 0;
  }
}
