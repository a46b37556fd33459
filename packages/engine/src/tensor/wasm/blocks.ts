import type { Memory } from './webassembly.js';

const PAGE = 65_536;
/** The sizes of blocks are multiples of this: whole cache lines. */
const ALIGNMENT = 64;
/** The memory grows by at least 1 MiB, so that many small blocks do not mean many calls into the system. */
const GROWTH_PAGES = 16;

interface Free {
  start: number;
  end: number;
}

/**
 * Allocates blocks of a memory for one thread. Several allocators may share the memory without knowing of each other:
 * each hands out the range that it was given and the pages by which it has grown the memory.
 */
export class Blocks {
  readonly #memory: Memory;
  /** The free blocks in order of address; no two touch. */
  readonly #free: Free[] = [];
  /** Bytes of the blocks in use, by address. */
  readonly #sizes = new Map<number, number>();

  constructor(memory: Memory) {
    this.#memory = memory;
  }

  /** Adds the range from `start` to `end`, which no other allocator hands out. */
  give(start: number, end: number): void {
    this.#put(aligned(start), end);
  }

  /** The address of a block. @throws RangeError when the memory is full. */
  take(bytes: number): number {
    const size = Math.max(ALIGNMENT, aligned(bytes));
    const fits = ({ start, end }: Free) => end - start >= size;
    let block = this.#free.find(fits);
    if (block === undefined) {
      this.#grow(size, this.#lastAtEnd());
      // If another thread grew the memory in between, the new pages do not touch the last block.
      block = this.#free.find(fits) ?? this.#grow(size, 0);
    }
    const address = block.start;
    block.start += size;
    if (block.start === block.end) this.#free.splice(this.#free.indexOf(block), 1);
    this.#sizes.set(address, size);
    return address;
  }

  /** Frees the block at an address; does nothing if no block starts there. */
  release(address: number): void {
    const size = this.#sizes.get(address);
    if (size === undefined) return;
    this.#sizes.delete(address);
    this.#put(address, address + size);
  }

  /** The free block that holds these bytes; it may hold more. */
  #put(start: number, end: number): Free {
    const after = this.#free.findIndex((block) => block.start >= end);
    const at = after === -1 ? this.#free.length : after;
    const [below, above] = [this.#free[at - 1], this.#free[at]];
    if (below?.end === start) {
      below.end = end;
      if (above?.start === end) {
        below.end = above.end;
        this.#free.splice(at, 1);
      }
      return below;
    }
    if (above?.start === end) {
      above.start = start;
      return above;
    }
    const block = { start, end };
    this.#free.splice(at, 0, block);
    return block;
  }

  /** Bytes of the free block at the end of the memory; 0 if there is none. */
  #lastAtEnd(): number {
    const last = this.#free.at(-1);
    return last?.end === this.#memory.buffer.byteLength ? last.end - last.start : 0;
  }

  #grow(size: number, had: number): Free {
    const pages = Math.ceil((size - had) / PAGE);
    const block = this.#growBy(Math.max(pages, GROWTH_PAGES)) ?? this.#growBy(pages);
    if (block !== undefined) return block;
    const gibibytes = Math.round((this.#memory.buffer.byteLength / 2 ** 30) * 10) / 10;
    throw new RangeError(`out of memory: the WebAssembly kernels hold ${gibibytes} GiB and need ${size} bytes more`);
  }

  #growBy(pages: number): Free | undefined {
    let start: number;
    try {
      start = this.#memory.grow(pages) * PAGE;
    } catch {
      return undefined;
    }
    return this.#put(start, start + pages * PAGE);
  }
}

const aligned = (bytes: number) => Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
