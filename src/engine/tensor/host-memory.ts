import type { HostMemoryKinds } from './kernel-arguments.js';
import type { KernelMemory } from './kernel-memory.js';

type HostArray = Float32Array | Int32Array | Uint16Array;

/** The memory of all kernels on the processor: this process's own. Allocation differs. */
export const hostMemory: Omit<KernelMemory<HostMemoryKinds>, 'allocate' | 'allocateBfloat16' | 'allocateIntegers'> = {
  integersIn: ({ buffer, byteOffset, length }) => new Int32Array(buffer, byteOffset, length),
  free: () => {},
  write: (to: HostArray, from: HostArray) => to.set(from),
  read: (memories) => Promise.resolve(memories.map((memory) => memory.slice()) as never),
  stored: () => undefined,
};
