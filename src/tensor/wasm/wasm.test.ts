import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { kernelsAgree, kernelsContract } from '../../../test/contracts/kernels.js';
import { loadNativeKernels } from '../native/load.js';
import { createReferenceKernels } from '../reference/reference.js';
import { createWasmKernels } from './wasm.js';

const bytes = readFileSync(new URL('../../../native/drmas.wasm', import.meta.url));
const create = () => createWasmKernels(bytes);

kernelsContract('wasm', create);

/** On inputs of about unit size and sums of some hundred terms: float32's half unit, 6e-8, times the terms' square root. */
const TOLERANCE = 2e-5;

const native = await loadNativeKernels({ threads: 1 });

describe('WebAssembly kernels', () => {
  it('agree with the reference', () => {
    kernelsAgree(create(), createReferenceKernels(), TOLERANCE);
  });

  const absent = 'reason' in native ? native.reason : undefined;
  it.skipIf(absent)(`agree with the native ones${absent === undefined ? '' : ` (skipped: ${absent})`}`, () => {
    if ('kernels' in native) kernelsAgree(create(), native.kernels, TOLERANCE);
  });

  it('refuse buffers that are too short or not theirs, as the native ones refuse what would leave them', () => {
    const kernels = create();
    const [ten, twenty] = [kernels.allocate(10), kernels.allocate(20)];
    const swiglu = (out: Float32Array, gateUp: Float32Array) => () => kernels.swiglu(out, gateUp, 2, 5);
    expect(swiglu(ten, twenty)).not.toThrow();
    expect(swiglu(ten.subarray(1), twenty)).toThrow('argument 0: the buffer is too short');
    expect(swiglu(ten, ten)).toThrow('argument 1: the buffer is too short');
    const foreign = 'argument 1: the buffer was not allocated by these kernels';
    expect(swiglu(ten, new Float32Array(20))).toThrow(foreign);
    expect(swiglu(ten, create().allocate(20))).toThrow(foreign);
    expect(swiglu(ten, kernels.allocateIntegers(20) as unknown as Float32Array)).toThrow(/expected a Float32Array/);
    expect(() => kernels.add(ten, twenty, -1)).toThrow(/expected a size/);
    expect(() => kernels.add(ten, twenty, 0.5)).toThrow(/expected a size/);
    expect(() => kernels.pack(ten, ten, 2 ** 28, 1, false)).toThrow(RangeError);
  });

  it('refuse indices out of range', () => {
    const kernels = create();
    const [table, out, tokens] = [kernels.allocate(30), kernels.allocate(10), kernels.allocateIntegers(2)];
    tokens.set([2, 3]);
    expect(() => kernels.embed(out, table, tokens, 2, 5)).not.toThrow();
    tokens[0] = 6;
    expect(() => kernels.embed(out, table, tokens, 2, 5)).toThrow(RangeError);
    tokens[0] = -1;
    expect(() => kernels.embedBackward(table, out, tokens, 2, 5)).toThrow(/index is out of range/);
    const starts = kernels.allocateIntegers(3);
    starts.set([0, 2, 1]);
    const [qkv, lse] = [kernels.allocate(6), kernels.allocate(2)];
    expect(() => kernels.attention(out, lse, qkv, starts, 2, 1, 1, 1)).toThrow(/offsets must not fall/);
    expect(() => kernels.attention(out, lse, qkv, starts, 1, 3, 2, 1)).toThrow(/multiple of kvHeads/);
    const positions = kernels.allocateIntegers(1).fill(4);
    const slots = kernels.allocateIntegers(1);
    expect(() => kernels.attentionCached(out, table, table, qkv, slots, positions, 1, 4, 1, 1, 1)).toThrow(RangeError);
    expect(() => kernels.cacheCopy(table, table, 0, 0, 5, 4, 1, 1)).toThrow(RangeError);
  });

  it('take nothing after they were disposed of', () => {
    const kernels = create();
    const x = kernels.allocate(4);
    kernels.dispose();
    expect(() => kernels.add(x, x, 4)).toThrow(/disposed of/);
  });
});
