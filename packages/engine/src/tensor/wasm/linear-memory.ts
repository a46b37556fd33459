import type { WeightArray } from '../kernel-arguments.js';
import { Blocks } from './blocks.js';
import { type Memory, webAssembly } from './webassembly.js';

const INITIAL_PAGES = 16;
/** The sizes to try: 4 GiB, the most that 32-bit addresses reach, then less if the system cannot reserve that much. */
const MOST_PAGES = [65_536, 49_152, 32_768, 16_384, 8_192];

interface ViewKind<View> {
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: SharedArrayBuffer, byteOffset: number, length: number): View;
}

/**
 * The memory of one set of kernels, and its buffers.
 *
 * The memory grows while buffers are in use, so it is a shared one: growing an unshared memory detaches its earlier
 * views. (A shared memory needs neither a second thread nor an isolated page; only handing it to another thread does.)
 *
 * Callers never give buffers back, as with any typed array. So each buffer gets a separate `SharedArrayBuffer` object
 * over the same bytes, which `grow(0)` creates. When the garbage collector finds that object, and hence every view of
 * the buffer, unreachable, the block becomes free again.
 */
export class LinearMemory {
  readonly memory: Memory;
  readonly #blocks: Blocks;
  readonly #buffers = new WeakSet<ArrayBufferLike>();
  readonly #forgotten = new FinalizationRegistry<number>((address) => this.release(address));

  constructor() {
    this.memory = reserve();
    this.#blocks = new Blocks(this.memory);
  }

  /** Blocks may lie from this address on. */
  begin(address: number): void {
    this.#blocks.give(address, this.memory.buffer.byteLength);
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

  holds(view: WeightArray | Int32Array): boolean {
    return this.#buffers.has(view.buffer);
  }

  /** The address of a block. @throws RangeError when the memory is full. */
  take(bytes: number): number {
    return this.#blocks.take(bytes);
  }

  /** Frees the block at an address; does nothing if no block starts there. */
  release(address: number): void {
    this.#blocks.release(address);
  }

  /** A view of a new, zeroed block. */
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

function reserve(): Memory {
  let problem: unknown;
  for (const maximum of MOST_PAGES) {
    try {
      return new webAssembly.Memory({ initial: INITIAL_PAGES, maximum, shared: true });
    } catch (error) {
      problem = error;
    }
  }
  throw problem;
}
