import type { CommandQueue } from './command-queue.js';
import { type DeviceFloats, DeviceMemory } from './device-memory.js';

/** Working memory of kernels: one piece for each purpose, as large as the largest call so far needs. */
export class ScratchMemory {
  readonly #queue: CommandQueue;
  readonly #pieces = new Map<string, DeviceFloats>();

  constructor(queue: CommandQueue) {
    this.#queue = queue;
  }

  /** `length` numbers with any contents. They belong to the call until the next call with this purpose. */
  take(purpose: string, length: number): DeviceFloats {
    let memory = this.#pieces.get(purpose);
    if (memory === undefined || memory.length < length) {
      if (memory !== undefined) this.#queue.free(memory.buffer);
      memory = new DeviceMemory('float32', this.#queue.allocate(length * 4), 0, length);
      this.#pieces.set(purpose, memory);
    }
    return memory.subarray(0, length);
  }
}
