import type { Kernels } from './kernels.js';
import type { Bfloat16s, Floats, Integers } from './memory.js';

/** Kernels whose memory one model has to itself, so that all of it can be given back when the model ends. */
export interface OwnMemory {
  readonly kernels: Kernels;
  /** Frees all memory that was allocated through `kernels` and is not free yet. */
  free(): void;
}

/** @returns The same kernels if the garbage collector frees their memory */
export function ownMemory(kernels: Kernels): OwnMemory {
  if (kernels.adapter === undefined) return { kernels, free: () => {} };
  const allocated = new Map<object, Floats | Integers | Bfloat16s>();
  const listed = <Memory extends Floats | Integers | Bfloat16s>(memory: Memory): Memory => {
    allocated.set(memory.buffer, memory);
    return memory;
  };
  const listing: Pick<Kernels, 'allocate' | 'allocateBfloat16' | 'allocateIntegers' | 'free'> = {
    allocate: (length) => listed(kernels.allocate(length)),
    allocateBfloat16: (length) => listed(kernels.allocateBfloat16(length)),
    allocateIntegers: (length) => listed(kernels.allocateIntegers(length)),
    free: (memory) => {
      allocated.delete(memory.buffer);
      kernels.free(memory);
    },
  };
  return {
    kernels: Object.assign(Object.create(kernels) as Kernels, listing),
    free: () => {
      for (const memory of allocated.values()) kernels.free(memory);
      allocated.clear();
    },
  };
}
