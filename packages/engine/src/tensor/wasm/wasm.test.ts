import { readFileSync } from 'node:fs';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { sameBits } from '../../../../../test/contracts/kernels/support.js';
import { kernelsAgree, kernelsContract, kernelsEqual } from '../../../../../test/contracts/kernels.js';
import { eventually, stopwatch } from '../../../../../test/support/time-and-chance.js';
import { loadNativeKernels } from '../native/load-kernels.js';
import { createReferenceKernels } from '../reference/reference.js';
import { LinearMemory } from './linear-memory.js';
import { startNodeThread } from './node-threads.js';
import type { StartThread } from './thread-pool.js';
import { STACK_BYTES } from './thread-work.js';
import { createWasmKernels, type WasmKernels } from './wasm.js';

const bytes = readFileSync(new URL('../../../native/drmas.wasm', import.meta.url));
const create = () => createWasmKernels(bytes);

/** With all of their threads at work. */
async function onThreads(threads: number, start: StartThread = startNodeThread): Promise<WasmKernels> {
  const kernels = createWasmKernels(bytes, { threads, start });
  await eventually(() => kernels.working() === threads);
  return kernels;
}

const [two, three] = await Promise.all([onThreads(2), onThreads(3)]);

const native = await loadNativeKernels({ threads: 1 });
const absent = 'reason' in native ? native.reason : undefined;

// The daily tests hold the fastest kernels of this machine to the contract, and compare others with the reference.
describe('on one thread', { tags: absent === undefined ? ['verify'] : [] }, () => kernelsContract('wasm', create));
for (const kernels of [two, three]) {
  const tags = kernels === two ? [] : ['verify'];
  it(`${kernels.threads} threads give the bits of one`, { tags }, () => kernelsEqual(kernels, create()));
  it(`${kernels.threads} threads give the bits of one again and again`, { tags: 'verify' }, () => {
    for (let round = 0; round < 3; round++) kernelsEqual(kernels, create());
  });
  describe('on several threads', { tags: 'verify' }, () =>
    kernelsContract(`wasm, ${kernels.threads} threads`, () => kernels),
  );
}
afterAll(() => {
  for (const kernels of [two, three]) kernels.dispose();
});

/**
 * On inputs of about unit size and sums of some hundred terms: float32's half unit, 6e-8, times the terms' square
 * root.
 */
const TOLERANCE = 2e-5;

describe('WebAssembly kernels', () => {
  it('agree with the reference', () => {
    kernelsAgree(create(), createReferenceKernels(), TOLERANCE);
  });

  // The daily tests hold both to the reference.
  const skipped = absent === undefined ? '' : ` (skipped: ${absent})`;
  it.skipIf(absent)(`agree with the native ones${skipped}`, { tags: 'verify' }, () => {
    if ('kernels' in native) kernelsAgree(create(), native.kernels, TOLERANCE);
  });

  it('refuse buffers that are too short or not theirs, as the native ones refuse what would leave them', () => {
    const kernels = create();
    const [ten, twenty] = [kernels.allocate(10), kernels.allocate(20)];
    const swiglu = (out: Float32Array, gateUp: Float32Array) => () =>
      kernels.swiglu({ out, gateUp, rows: 2, feedForward: 5 });
    expect(swiglu(ten, twenty)).not.toThrow();
    expect(swiglu(ten.subarray(1), twenty)).toThrow('swiglu(out): the buffer is too short');
    expect(swiglu(ten, ten)).toThrow('swiglu(gateUp): the buffer is too short');
    const foreign = 'swiglu(gateUp): the buffer was not allocated by these kernels';
    expect(swiglu(ten, new Float32Array(20))).toThrow(foreign);
    expect(swiglu(ten, create().allocate(20))).toThrow(foreign);
    expect(swiglu(ten, kernels.allocateIntegers(20) as unknown as Float32Array)).toThrow(/expected a Float32Array/);
    expect(() => kernels.add({ out: ten, x: twenty, length: -1 })).toThrow(/expected a size/);
    expect(() => kernels.add({ out: ten, x: twenty, length: 0.5 })).toThrow(/expected a size/);
    expect(() => kernels.pack({ packed: ten, weight: ten, inputs: 2 ** 28, outputs: 1, transpose: false })).toThrow(
      RangeError,
    );
  });

  it('refuse indices out of range', () => {
    const kernels = create();
    const [table, out, tokens] = [kernels.allocate(30), kernels.allocate(10), kernels.allocateIntegers(2)];
    tokens.set([2, 3]);
    expect(() => kernels.embed({ out, table, tokens, rows: 2, width: 5 })).not.toThrow();
    tokens[0] = 6;
    expect(() => kernels.embed({ out, table, tokens, rows: 2, width: 5 })).toThrow(RangeError);
    tokens[0] = -1;
    expect(() => kernels.embedBackward({ dTable: table, dOut: out, tokens, rows: 2, width: 5 })).toThrow(
      /index is out of range/,
    );
    const one = { heads: 1, kvHeads: 1, headDim: 1 };
    const starts = kernels.allocateIntegers(3);
    starts.set([0, 2, 1]);
    const [qkv, lse] = [kernels.allocate(6), kernels.allocate(2)];
    expect(() => kernels.attention({ out, logSumExp: lse, qkv, starts, sequences: 2, heads: one })).toThrow(
      /offsets must not fall/,
    );
    expect(() =>
      kernels.attention({
        out,
        logSumExp: lse,
        qkv,
        starts,
        sequences: 1,
        heads: { heads: 3, kvHeads: 2, headDim: 1 },
      }),
    ).toThrow(/multiple of kvHeads/);
    const positions = kernels.allocateIntegers(1).fill(4);
    const slots = kernels.allocateIntegers(1);
    expect(() =>
      kernels.attentionCached({
        out,
        keys: table,
        values: table,
        qkv,
        slots,
        positions,
        alike: slots,
        rows: 1,
        capacity: 4,
        heads: one,
      }),
    ).toThrow(RangeError);
    expect(() =>
      kernels.cacheCopy({ keys: table, values: table, from: 0, to: 0, length: 5, capacity: 4, heads: one }),
    ).toThrow(RangeError);
  });

  it('take nothing after they were disposed of', () => {
    const kernels = create();
    const x = kernels.allocate(4);
    kernels.dispose();
    expect(() => kernels.add({ out: x, x, length: 4 })).toThrow(/disposed of/);
  });
});

describe('threads of the WebAssembly kernels', () => {
  /** A call of 64 tasks that each need their thread's stack and working memory, and its result. */
  function attention(kernels: WasmKernels): () => Float32Array {
    const [sequences, length, heads, headDim] = [16, 20, 4, 16];
    const rows = sequences * length;
    const qkv = kernels.allocate(rows * heads * 3 * headDim).map((_, i) => Math.sin(i));
    const [input, out] = [kernels.allocate(qkv.length), kernels.allocate(rows * heads * headDim)];
    input.set(qkv);
    const logSumExp = kernels.allocate(rows * heads);
    const starts = kernels.allocateIntegers(sequences + 1);
    for (let s = 0; s <= sequences; s++) starts[s] = s * length;
    return () => {
      kernels.attention({
        out: out.fill(0),
        logSumExp,
        qkv: input,
        starts,
        sequences,
        heads: { heads, kvHeads: heads, headDim },
      });
      return out;
    };
  }
  const expected = attention(create())();

  /** Calls until it throws, or for 20 seconds. */
  function untilItThrows(call: () => unknown): void {
    for (const seconds = stopwatch(); seconds() < 20; ) call();
  }

  it('are not waited for: what does not come up holds nobody up', () => {
    const kernels = createWasmKernels(bytes, { threads: 3, start: () => {} });
    expect([kernels.threads, kernels.working()]).toEqual([3, 1]);
    kernelsEqual(kernels, create());
  });

  it('end when the kernels are disposed of', async () => {
    const exits: Promise<number>[] = [];
    const kernels = await onThreads(3, (settings, onFailure) => {
      const worker = startNodeThread(settings, onFailure);
      exits.push(new Promise((resolve) => worker.once('exit', resolve)));
    });
    kernels.dispose();
    expect(await Promise.all(exits)).toEqual([0, 0]);
  });

  it('say what went wrong in one of them, and go on', async () => {
    // A stack of 64 bytes, so that any work fails.
    const kernels = await onThreads(2, (settings, onFailure) => {
      startNodeThread({ ...settings, stack: 64 - STACK_BYTES }, onFailure);
    });
    const call = attention(kernels);
    for (let round = 0; round < 3; round++) {
      expect(() => untilItThrows(call)).toThrow('a thread of the WebAssembly kernels failed: memory access out of');
    }
    kernels.dispose();
  }, 70_000);

  it('say why one cannot start', async () => {
    const kernels = createWasmKernels(bytes, {
      threads: 2,
      start: (settings, onFailure) => void startNodeThread({ ...settings, stack: -STACK_BYTES - 2 ** 16 }, onFailure),
    });
    const call = attention(kernels);
    const failed = /^BackendError: a thread of the WebAssembly kernels failed: memory access out of/;
    await eventually(() => {
      try {
        call();
      } catch (error) {
        expect(String(error)).toMatch(failed);
        return true;
      }
      return false;
    });
    sameBits(call(), expected, 'attention');
    kernels.dispose();
  });

  it('have finished when the calling thread fails, and the next call is as good as any', async () => {
    const kernels = await onThreads(2);
    const call = attention(kernels);
    const full = vi.spyOn(LinearMemory.prototype, 'take').mockImplementation(() => {
      throw new RangeError('full');
    });
    for (let round = 0; round < 20; round++) expect(() => untilItThrows(call)).toThrow(new RangeError('full'));
    full.mockRestore();
    for (let round = 0; round < 20; round++) sameBits(call(), expected, 'attention');
    kernels.dispose();
  });
});
