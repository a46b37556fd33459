import { hostKernels, hostMemory } from '../host-kernels.js';
import type { HostKernels } from '../kernels.js';
import { Arguments } from './arguments.js';
import { checkedKernels, type ModuleKernel, type ModuleKernels } from './checked-kernels.js';
import { type Exports, instantiate } from './instance.js';
import { LinearMemory } from './linear-memory.js';
import { type StartThread, ThreadPool } from './thread-pool.js';
import { webAssembly } from './webassembly.js';

export interface WasmKernels extends HostKernels {
  /** The number of threads that work by now. Others may still be starting; calls do not wait for them. */
  working(): number;
}

export interface WasmThreads {
  /** At least 1; the calling thread is one of them. It must be one that may wait: in a browser, a worker. */
  readonly threads: number;
  /** Starts the others. */
  readonly start: StartThread;
}

/**
 * The C++ kernels compiled to WebAssembly with 128-bit vectors, on one thread unless others can be started. Needs no
 * Node: `bytes` is the content of native/drmas.wasm. In a browser it belongs into a worker, since kernels block.
 * There is no fused multiply-add, so results differ from the native ones in the last bits. At most 4 GiB of buffers.
 *
 * Calls throw a RangeError when a buffer is too short or was not allocated here, an index is out of range, or the
 * kernels were disposed of; `allocate` when the memory is full; a BackendError when another thread failed.
 * @throws WebAssembly.CompileError or LinkError when `bytes` is something else, or the engine too old.
 */
export function createWasmKernels(bytes: Uint8Array, { threads, start }: WasmThreads = ALONE): WasmKernels {
  const memory = new LinearMemory();
  const module = new webAssembly.Module(bytes);
  const exports = instantiate(module, memory.memory, memory);
  memory.begin(exports.__heap_base.value);
  exports.__wasm_init_tls(memory.take(exports.__tls_size.value));
  const pool = new ThreadPool(exports, module, memory, threads, start);
  const wasm = guarded(exports, pool);
  forgotten.register(wasm, exports);
  const a = new Arguments(memory);
  return {
    name: 'wasm',
    isa: 'simd128',
    bfloat16Products: 'widened',
    threads,
    working: () => pool.working,
    allocate: (length) => memory.floats(a.size('allocate(length)', length)),
    allocateBfloat16: (length) => memory.bfloat16(a.size('allocateBfloat16(length)', length)),
    allocateIntegers: (length) => memory.integers(a.size('allocateIntegers(length)', length)),
    dispose: () => {
      a.dispose();
      exports.stop();
    },
    ...hostMemory,
    ...hostKernels,
    ...checkedKernels(a, wasm),
  };
}

const ALONE: WasmThreads = { threads: 1, start: () => {} };

/** Stops the threads of kernels that have become unreachable. */
const forgotten = new FinalizationRegistry<Exports>((exports) => exports.stop());

function guarded(exports: Exports, pool: ThreadPool): ModuleKernels {
  const functions = Object.entries(exports).filter(
    (entry): entry is [string, ModuleKernel] => typeof entry[1] === 'function',
  );
  return Object.fromEntries(functions.map(([name, kernel]) => [name, pool.guard(kernel)])) as ModuleKernels;
}
