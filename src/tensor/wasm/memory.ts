import type { WeightArray } from '../kernels.js';
import { type Memory, webAssembly } from './webassembly.js';

const PAGE = 65_536;
/** Blocks are whole cache lines. */
const ALIGNMENT = 64;
/** Grown by at least 1 MiB, so that many small buffers do not mean many calls into the system. */
const GROWTH_PAGES = 16;
/** What 32-bit addresses reach: 4 GiB; less where so many addresses cannot be reserved. */
const MOST_PAGES = [65_536, 49_152, 32_768, 16_384, 8_192];

interface ViewKind<View> {
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: SharedArrayBuffer, byteOffset: number, length: number): View;
}

interface Free {
  start: number;
  end: number;
}

/**
 * The memory of one instance of the kernels, and its allocator.
 *
 * It grows while buffers are in use, so it is a shared memory: growing an unshared one takes its earlier views away. (That
 * needs no second thread, and no page that is isolated from others: only handing such memory to another thread does.)
 *
 * Nobody gives buffers back, as with any typed array. So each gets a buffer object of its own over the same bytes, which
 * `grow(0)` makes, and when the garbage collector has found that object, hence every view cut from the buffer, to be
 * unreachable, the block is free again.
 */
export class LinearMemory {
  readonly memory: Memory;
  /** In order of address; no two touch. */
  readonly #free: Free[] = [];
  /** Bytes of the blocks in use, by address. */
  readonly #taken = new Map<number, number>();
  readonly #buffers = new WeakSet<ArrayBufferLike>();
  readonly #forgotten = new FinalizationRegistry<number>((address) => this.release(address));
  #end = 0;

  constructor() {
    this.memory = reserve();
  }

  /** Blocks may lie from this address on. */
  begin(address: number): void {
    this.#end = this.memory.buffer.byteLength;
    this.#free.push({ start: aligned(address), end: this.#end });
  }

  floats(length: number): Float32Array {
    return this.#view(Float32Array, length);
  }

  bfloat16(length: number): Uint16Array {
    return this.#view(Uint16Array, length);
  }

  integers(length: number): Int32Array {
    return this.#view(Int32Array, length);
  }

  /** Whether it is a view of a buffer that was allocated here. */
  holds(view: WeightArray | Int32Array): boolean {
    return this.#buffers.has(view.buffer);
  }

  /** The address of a block. @throws RangeError when the memory is full. */
  take(bytes: number): number {
    const size = Math.max(ALIGNMENT, aligned(bytes));
    let block = this.#free.find(({ start, end }) => end - start >= size);
    if (block === undefined) {
      this.#grow(size);
      block = this.#free.at(-1) as Free;
    }
    const address = block.start;
    block.start += size;
    if (block.start === block.end) this.#free.splice(this.#free.indexOf(block), 1);
    this.#taken.set(address, size);
    return address;
  }

  /** Does nothing where no block starts. */
  release(address: number): void {
    const size = this.#taken.get(address);
    if (size === undefined) return;
    this.#taken.delete(address);
    this.#put(address, address + size);
  }

  #put(start: number, end: number): void {
    const after = this.#free.findIndex((block) => block.start >= end);
    const at = after === -1 ? this.#free.length : after;
    const [below, above] = [this.#free[at - 1], this.#free[at]];
    if (below?.end === start) {
      below.end = end;
      if (above?.start === end) {
        below.end = above.end;
        this.#free.splice(at, 1);
      }
    } else if (above?.start === end) above.start = start;
    else this.#free.splice(at, 0, { start, end });
  }

  #grow(size: number): void {
    const last = this.#free.at(-1);
    const missing = size - (last?.end === this.#end ? last.end - last.start : 0);
    const pages = Math.ceil(missing / PAGE);
    if (!this.#growBy(Math.max(pages, GROWTH_PAGES)) && !this.#growBy(pages)) {
      const gibibytes = Math.round((this.#end / 2 ** 30) * 10) / 10;
      throw new RangeError(`out of memory: the WebAssembly kernels hold ${gibibytes} GiB and need ${size} bytes more`);
    }
  }

  #growBy(pages: number): boolean {
    try {
      this.memory.grow(pages);
    } catch {
      return false;
    }
    const end = this.#end + pages * PAGE;
    this.#put(this.#end, end);
    this.#end = end;
    return true;
  }

  /** Zeroed. */
  #view<View extends WeightArray | Int32Array>(Kind: ViewKind<View>, length: number): View {
    const address = this.take(length * Kind.BYTES_PER_ELEMENT);
    const view = new Kind(this.#bufferFor(address), address, length);
    view.fill(0);
    return view;
  }

  #bufferFor(address: number): SharedArrayBuffer {
    const { buffer } = this.memory;
    this.#buffers.add(buffer);
    this.#forgotten.register(buffer, address);
    this.memory.grow(0); // the memory forgets this object and makes another
    return buffer;
  }
}

const aligned = (bytes: number) => Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;

function reserve(): Memory {
  let problem: unknown;
  for (const maximum of MOST_PAGES) {
    try {
      return new webAssembly.Memory({ initial: GROWTH_PAGES, maximum, shared: true });
    } catch (error) {
      problem = error;
    }
  }
  throw problem;
}
