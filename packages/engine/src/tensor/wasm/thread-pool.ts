import { BackendError } from '../../errors.js';
import { Board } from './board.js';
import type { ModuleKernel } from './checked-kernels.js';
import type { Exports } from './instance.js';
import type { LinearMemory } from './linear-memory.js';
import { STACK_BYTES, type ThreadSettings } from './thread-work.js';
import type { Module } from './webassembly.js';

/** Starts a thread that calls `workOn`, without waiting for it. `onFailure` gets the reason if it ends early. */
export type StartThread = (settings: ThreadSettings, onFailure: (message: string) => void) => void;

/** The threads of one set of kernels. Its C++ half is native/pool.h. */
export class ThreadPool {
  readonly #wasm: Exports;
  readonly #board: Board;
  readonly #top: number;

  constructor(wasm: Exports, module: Module, memory: LinearMemory, threads: number, start: StartThread) {
    this.#wasm = wasm;
    this.#top = wasm.__stack_pointer.value;
    const words = memory.integers(Board.LENGTH);
    this.#board = new Board(words);
    this.#board.arrive();
    wasm.setThreads(threads);
    for (let i = 1; i < threads; i++) {
      const stack = memory.take(STACK_BYTES + wasm.__tls_size.value);
      const settings = { module, memory: memory.memory, stack, board: words.byteOffset };
      start(settings, (message) => this.#board.fail(message));
    }
  }

  /** Threads that have come up; the calling one is one of them. */
  get working(): number {
    return this.#board.working;
  }

  /** Wraps a kernel. If a thread fails, the call throws the error after all threads have stopped working on it. */
  guard(kernel: ModuleKernel): ModuleKernel {
    return (...values) => {
      let result: number;
      try {
        result = kernel(...values);
      } catch (error) {
        this.#wasm.abandon();
        this.#wasm.__stack_pointer.value = this.#top;
        this.#board.takeFailure();
        throw error;
      }
      const failure = this.#board.takeFailure();
      if (failure !== undefined) throw new BackendError(`a thread of the WebAssembly kernels failed: ${failure}`);
      return result;
    };
  }
}
