import type { ModuleKernels } from './checked-kernels.js';
import { type Memory, type Module, webAssembly } from './webassembly.js';

/** The exports of native/wasm.cpp and of the linker. */
export type Exports = ModuleKernels & {
  /** Sets the number of threads that a call's work is divided among. Default 1. */
  setThreads(count: number): void;
  /** On a further thread: takes part in calls until `stop`. */
  work(): void;
  /** On a further thread, after `work` has thrown. */
  leave(): void;
  /** On the calling thread, after a kernel has thrown: when it returns, no thread works on that call any more. */
  abandon(): void;
  stop(): void;
  /** Initialises a thread's own variables at an address. */
  __wasm_init_tls(address: number): void;
  readonly __tls_size: { readonly value: number };
  readonly __stack_pointer: { value: number };
  readonly __heap_base: { readonly value: number };
};

interface Allocator {
  take(bytes: number): number;
  release(address: number): void;
}

/** An instance for one thread. The first one on a memory initialises it. @throws WebAssembly.LinkError */
export function instantiate(module: Module, memory: Memory, allocator: Allocator): Exports {
  const env = {
    memory,
    drmas_allocate: (size: number) => allocator.take(size >>> 0),
    drmas_release: (address: number) => allocator.release(address >>> 0),
  };
  return new webAssembly.Instance(module, { env }).exports as Exports;
}
