import { afterAll, describe, expect, it } from 'vitest';
import { kernelsAgree, kernelsContract, kernelsEqual } from '../../../test/contracts/kernels.js';
import type { Kernels } from '../kernels.js';
import { createReferenceKernels } from '../reference/reference.js';
import { loadNativeKernels, type NativeOptions } from './load-kernels.js';

async function open(threads: number, isa?: NativeOptions['isa']): Promise<Kernels | undefined> {
  const loaded = await loadNativeKernels({ threads, isa });
  return 'reason' in loaded ? undefined : loaded.kernels;
}

const first = await loadNativeKernels({ threads: 1 });
const reason = 'reason' in first ? first.reason : undefined;
if ('kernels' in first) first.kernels.dispose();

describe.skipIf(reason !== undefined)(reason ? `native kernels (skipped: ${reason})` : 'native kernels', async () => {
  for (const [isa, threads] of [
    ['avx512', 1],
    ['avx2', 2],
    ['portable', 3],
  ] as const) {
    const kernels = await open(threads, isa);
    if (kernels) kernelsContract(`native, ${isa}, ${threads} threads`, () => kernels);
    else it.skip(`${isa} (this processor does not have it)`);
  }

  const [one, two, three] = [await open(1), await open(2), await open(3)];
  afterAll(() => {
    for (const kernels of [one, two, three]) kernels?.dispose();
  });

  it('give the same bits at any number of threads', () => {
    if (!one || !two || !three) throw new Error(reason);
    expect([one.threads, two.threads, three.threads]).toEqual([1, 2, 3]);
    kernelsEqual(two, one);
    kernelsEqual(three, one);
  });

  it('have buffers of more than 4 GiB, which take the memory that is touched, and say where there is none', () => {
    if (!one) throw new Error(reason);
    const last = one.allocate(2 ** 30 + 16).subarray(2 ** 30);
    one.add(last, one.allocate(16).fill(2), 16);
    expect([...last]).toEqual(new Array(16).fill(2));
    expect(() => one.allocate(2 ** 40)).toThrow('out of memory');
  });

  it('agree with the reference', () => {
    if (!one) throw new Error(reason);
    kernelsAgree(one, createReferenceKernels(), 2e-5);
  });
});
