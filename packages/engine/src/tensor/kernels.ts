import type { Bfloat16Products } from './bfloat16.js';
import type { DeviceCounts } from './device-counts.js';
import type { HostMemoryKinds, MemoryKinds } from './kernel-arguments.js';
import type { KernelMemory } from './kernel-memory.js';
import type { FusedKernels, KernelOperations, ProcessorOperations } from './kernel-operations.js';
import type { AnyMemoryKinds } from './memory.js';

/**
 * A set of kernels, the engine's operations. There are four implementations (C++, WebAssembly, TypeScript, WGSL on a
 * GPU) and one contract suite (test/contracts/kernels.ts).
 *
 * Promises that all implementations keep:
 * - Row invariance. A row's result depends on that row's inputs only: not on the number of rows of the call, the row's
 *   place among them, packing, the cache, or the number of threads. Sums over a row run in one fixed order.
 * - Determinism. Sums over rows (gradients of weights) run in one fixed order too, at any thread count.
 * - No hidden state: calls may come in any order, buffers belong to the caller.
 *
 * All matrices are row-major. Buffers may be longer than needed; only the stated part is read or written. Outputs are
 * overwritten unless the documentation says "added to". Outputs must not overlap inputs unless stated.
 */
export interface KernelsOn<M extends MemoryKinds> extends KernelOperations<M>, KernelMemory<M> {
  /**
   * The instruction set, for people: 'avx512', 'avx2', 'neon', 'portable', 'simd128', 'typescript', 'wgsl'. It ends in
   * '-amx' if products in bfloat16 are summed in tiles, which gives other bits.
   */
  readonly isa: string;
  readonly threads: number;
  /** How products in bfloat16 are computed. */
  readonly bfloat16Products: Bfloat16Products;
  /** The fastest products in bfloat16 on this processor, if kernels without them were asked for. */
  readonly fastestBfloat16Products?: Bfloat16Products;
  /** Stops the thread pool; the kernels must not be used afterwards. */
  dispose(): void;
}

/** The kernels on the processor, in this process's own memory. */
export interface HostKernels extends KernelsOn<HostMemoryKinds>, ProcessorOperations<HostMemoryKinds> {
  readonly name: 'native' | 'wasm' | 'reference';
}

/** The kernels on any memory: the engine computes with these. */
export interface Kernels extends KernelsOn<AnyMemoryKinds>, Partial<ProcessorOperations<AnyMemoryKinds>> {
  readonly name: HostKernels['name'] | 'webgpu';
  /** The name of the device. Results have the same bits only on the same device. */
  readonly adapter?: string;
  /** Several calls in one, on devices whose calls are expensive. */
  readonly fused?: FusedKernels<AnyMemoryKinds> | undefined;
  /** The most numbers in float32 of one allocation, if a device limits them. */
  readonly mostNumbers?: number;
  /** The work that a device has received and the memory that it holds. */
  readonly counts?: DeviceCounts;
}
