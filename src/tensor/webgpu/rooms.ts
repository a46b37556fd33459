import type { CommandQueue } from './command-queue.js';
import { type DeviceFloats, DeviceMemory } from './device-memory.js';

/** Memory that operations need for themselves: one piece a purpose, as large as the largest call wanted it. */
export class Rooms {
  readonly #queue: CommandQueue;
  readonly #rooms = new Map<string, DeviceFloats>();

  constructor(queue: CommandQueue) {
    this.#queue = queue;
  }

  /** `length` numbers, whatever they hold, which stay a call's own until the next one with this purpose. */
  take(purpose: string, length: number): DeviceFloats {
    let memory = this.#rooms.get(purpose);
    if (memory === undefined || memory.length < length) {
      if (memory !== undefined) this.#queue.free(memory.buffer);
      memory = new DeviceMemory('float32', this.#queue.allocate(length * 4), 0, length);
      this.#rooms.set(purpose, memory);
    }
    return memory.subarray(0, length);
  }
}
