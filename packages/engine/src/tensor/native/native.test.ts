import { readFile } from 'node:fs/promises';
import { afterAll, describe, expect, inject, it } from 'vitest';
import { body, floats, noise, sameBits } from '../../../../../test/contracts/kernels/support.js';
import { kernelsAgree, kernelsContract, kernelsEqual } from '../../../../../test/contracts/kernels.js';
import type { HostKernels } from '../kernels.js';
import { createReferenceKernels } from '../reference/reference.js';
import { loadNativeKernels, type NativeOptions } from './load-kernels.js';

async function open(
  threads: number,
  isa?: NativeOptions['isa'],
  bfloat16Products?: NativeOptions['bfloat16Products'],
): Promise<HostKernels | undefined> {
  const loaded = await loadNativeKernels({ threads, isa, bfloat16Products });
  return 'reason' in loaded ? undefined : loaded.kernels;
}

const first = await loadNativeKernels({ threads: 1 });
const reason = 'reason' in first ? first.reason : undefined;
if ('kernels' in first) first.kernels.dispose();

describe.skipIf(reason !== undefined)(reason ? `native kernels (skipped: ${reason})` : 'native kernels', async () => {
  // The daily tests hold the first set that this processor has to the contract; the other sets need not be compiled.
  let tags: 'verify'[] = [];
  for (const [isa, threads, bfloat16Products] of [
    ['avx512', 2, 'widened'],
    ['avx2', 2, undefined],
    ['portable', 3, undefined],
    ['avx512', 1, 'avx512-bf16'],
    ['avx512', 2, 'amx'],
    ['portable', 3, 'amx-emulated'],
  ] as const) {
    if (tags.length > 0 && !inject('slowTests')) break;
    const kernels = await open(threads, isa, bfloat16Products);
    const name = `${isa}, ${kernels?.bfloat16Products ?? bfloat16Products}`;
    if (kernels) {
      // Another number of threads, which a daily test compares below, shows also what differs from run to run.
      const repeated = { tags: 'verify' } as const;
      const run = () => kernelsContract(`native, ${name}, ${threads} threads`, () => kernels, { repeated });
      describe('one set', { tags }, run);
      tags = ['verify'];
    } else it.skip(`${name} (this processor does not have it)`);
  }

  const [one, three] = [await open(1), await open(3)];
  afterAll(() => {
    for (const kernels of [one, three]) kernels?.dispose();
  });

  it('give the same bits at any number of threads', () => {
    if (!one || !three) throw new Error(reason);
    expect([one.threads, three.threads]).toEqual([1, 3]);
    kernelsEqual(three, one);
  });

  it('give the same bits at two threads and at four', { tags: 'verify' }, async () => {
    const [two, four] = [await open(2), await open(4)];
    if (!one || !two || !four) throw new Error(reason);
    expect([two.threads, four.threads]).toEqual([2, 4]);
    kernelsEqual(two, one);
    kernelsEqual(four, one);
    for (const kernels of [two, four]) kernels.dispose();
  });

  it('give the same bits whoever makes the processor that blocks are made for', {
    tags: 'verify',
    timeout: 300_000,
  }, async () => {
    for (const [isa, bfloat16Products] of [
      ['avx512', 'avx512-bf16'],
      ['avx512', 'widened'],
      ['avx2', undefined],
      ['portable', undefined],
    ] as const)
      for (const threads of [1, 3]) {
        const loaded = await Promise.all(
          (['any', 'amd', 'older-amd'] as const).map((cores) =>
            loadNativeKernels({ threads, isa, bfloat16Products, cores }),
          ),
        );
        const [any, ...others] = loaded.flatMap((one) => ('kernels' in one ? one.kernels : []));
        if (!any) continue; // this processor does not have the set
        for (const amd of others) kernelsEqual(amd, any);
        for (const kernels of [any, ...others]) kernels.dispose();
      }
  });

  it('share out long sums of few rows, whose panels do not share out evenly', async () => {
    if (!one) throw new Error(reason);
    const inputs = 530;
    const sumsOf = (kernels: HostKernels, rows: number, outputs: number) => {
      const packed = floats(kernels, new Float32Array(kernels.packedSize({ inputs, outputs })));
      const weight = floats(kernels, noise(inputs * outputs, 'weight'));
      kernels.pack({ packed, weight, inputs, outputs, transpose: false });
      const out = floats(kernels, noise(rows * outputs, 'before'));
      const x = floats(kernels, noise(rows * inputs, 'x'));
      kernels.linear({ out, x, packed, rows, inputs, outputs, accumulate: true });
      return body(out);
    };
    const sizes = [13, 20].flatMap((rows) => [40, 100, 160, 260].map((outputs) => [rows, outputs] as const));
    const expected = sizes.map(([rows, outputs]) => sumsOf(one, rows, outputs));
    for (const threads of [3, 4, 5]) {
      const more = await open(threads);
      if (!more) throw new Error(reason);
      for (const [i, [rows, outputs]] of sizes.entries())
        sameBits(
          sumsOf(more, rows, outputs),
          expected[i] as Float32Array,
          `${rows} x ${inputs} x ${outputs}, ${threads} threads`,
        );
      more.dispose();
    }
  });

  it('have buffers of more than 4 GiB, which take the memory that is touched, and say where there is none', () => {
    if (!one) throw new Error(reason);
    const last = one.allocate(2 ** 30 + 16).subarray(2 ** 30);
    one.add({ out: last, x: one.allocate(16).fill(2), length: 16 });
    expect([...last]).toEqual(new Array(16).fill(2));
    expect(() => one.allocate(2 ** 40)).toThrow('out of memory');
  });

  it('refuse sizes that no buffer has before they count by them', () => {
    if (!one) throw new Error(reason);
    const empty = one.allocate(0);
    const some = one.allocate(64);
    const heads = { heads: 1, kvHeads: 1, headDim: 2 };
    const copy = (capacity: number, shape = heads) =>
      one.cacheCopy({ keys: some, values: some, from: 0, to: 0, length: 1, capacity, heads: shape });
    const turn = (shape: typeof heads) =>
      one.rope({ qkv: some, table: some, positions: one.allocateIntegers(1), rows: 1, heads: shape, inverse: false });
    for (const wrong of [
      () => one.swiglu({ out: empty, gateUp: empty, rows: 2 ** 53 - 1, feedForward: 0 }), // endless rounds over nothing
      () => copy(2 ** 50, { heads: 4096, kvHeads: 4096, headDim: 4 }), // 2^64 floats, which 64 bits count as none
      () => copy(1, { heads: 1, kvHeads: 0, headDim: 2 }),
      () => copy(1, { heads: 1, kvHeads: 1, headDim: 0 }),
      () => turn({ heads: 2 ** 52 + 1e5, kvHeads: 1, headDim: 2 }),
      () => turn({ heads: 2 ** 30, kvHeads: 1, headDim: 2 }),
    ])
      expect(wrong).toThrow(RangeError);
    expect(() => one.swiglu({ out: empty, gateUp: empty, rows: 3, feedForward: 0 })).not.toThrow();
  });

  it('multiply in bfloat16 by what is fastest on this processor', async () => {
    const described = await readFile('/proc/cpuinfo', 'utf8').catch(() => '');
    const flags = new Set(/^flags\s*:(.*)$/m.exec(described)?.[1]?.trim().split(' '));
    if (!flags.has('avx512f')) return;
    const pairs = flags.has('avx512_bf16') && !described.includes('GenuineIntel');
    const best = flags.has('amx_bf16') ? 'amx' : pairs ? 'avx512-bf16' : 'widened';
    expect((await open(1, 'avx512'))?.bfloat16Products).toBe(best);
  });

  // The contract of products in bfloat16 states their order of sums: the daily tests hold it on the first set.
  it('have the same bits with AVX512-BF16 and without, and say which they use', { tags: 'verify' }, async () => {
    const [instruction, widened] = [await open(1, 'avx512', 'avx512-bf16'), await open(1, 'avx512', 'widened')];
    if (!instruction || !widened) return;
    expect([instruction, widened].map(({ bfloat16Products }) => bfloat16Products)).toEqual(['avx512-bf16', 'widened']);
    kernelsAgree(instruction, widened, 0);
    for (const kernels of [instruction, widened]) kernels.dispose();
  });

  it('have the same bits in tiles of AMX, emulated ones, and the reference of those, at any number of threads', {
    tags: 'verify',
  }, async () => {
    const [emulated, more] = [await open(1, undefined, 'amx-emulated'), await open(3, undefined, 'amx-emulated')];
    if (!one || !emulated || !more) throw new Error(reason);
    expect(emulated.bfloat16Products).toBe('amx-emulated');
    expect(emulated.isa).toBe(`${one.isa.replace('-amx', '')}-amx`);
    kernelsEqual(more, emulated);
    kernelsAgree(emulated, createReferenceKernels('amx-emulated'), 2e-5);
    const tiles = await open(2, 'avx512', 'amx');
    if (tiles) kernelsEqual(tiles, emulated);
    for (const kernels of [emulated, more, tiles]) kernels?.dispose();
  });

  it('agree with the reference', () => {
    if (!one) throw new Error(reason);
    kernelsAgree(one, createReferenceKernels(), 2e-5);
  });
});
