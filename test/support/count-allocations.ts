import type { Kernels } from '@drmas/engine/kernels';

/** The kernels, and the length of every buffer that some work allocated. */
export function countAllocations(all: Kernels): {
  kernels: Kernels;
  during(work: () => Promise<void>): Promise<number[]>;
} {
  let sizes: number[] = [];
  const allocate = (length: number) => {
    sizes.push(length);
    return all.allocate(length);
  };
  const allocateBfloat16 = (length: number) => {
    sizes.push(length);
    return all.allocateBfloat16(length);
  };
  const allocateIntegers = (length: number) => {
    sizes.push(length);
    return all.allocateIntegers(length);
  };
  const kernels = new Proxy(all, {
    get(target, key) {
      if (key === 'allocate') return allocate;
      if (key === 'allocateBfloat16') return allocateBfloat16;
      if (key === 'allocateIntegers') return allocateIntegers;
      const value: unknown = Reflect.get(target, key);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  return {
    kernels,
    async during(work) {
      sizes = [];
      await work();
      return sizes;
    },
  };
}
