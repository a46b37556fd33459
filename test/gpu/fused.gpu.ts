/** Fused operations have the bits of the calls that they replace, in all forms. A layer needs few dispatches. */

import { type DecoderConfig, PROJECTIONS } from '@drmas/engine/contract';
import { PolicyModel } from '@drmas/engine/internal/model/decoder/policy-model';
import { DecoderSampler } from '@drmas/engine/internal/model/decoder/sampling/decoder-sampler';
import { decoderTensors, initialise } from '@drmas/engine/internal/model/decoder/weights/decoder-tensors';
import { baseWeights, DecoderWeights } from '@drmas/engine/internal/model/decoder/weights/model-weights';
import { toBfloat16 } from '@drmas/engine/internal/tensor/bfloat16';
import type { Before } from '@drmas/engine/internal/tensor/kernel-arguments';
import { linearOntoByCalls } from '@drmas/engine/internal/tensor/linear-onto';
import { RandomStream, randomKey } from '@drmas/engine/math';
import { parameterCount } from '@drmas/engine/model';
import type { DeviceKernels } from '@drmas/webgpu/internal/kernels/device-kernels';
import type { DeviceBfloat16s, DeviceFloats } from '@drmas/webgpu/internal/kernels/device-memory';
import { describe, expect, it } from 'vitest';
import { generate, plain } from '../contracts/decoder.js';
import { openedDevices, sharedKernels } from './opened-device.js';

const open = openedDevices();
const openNothing = openedDevices('null');

function noise(length: number, key: string): Float32Array {
  const stream = new RandomStream('fused operations', key);
  return Float32Array.from({ length }, () => stream.normal());
}

function floats(kernels: DeviceKernels, length: number, key: string): DeviceFloats {
  const memory = kernels.allocate(length);
  kernels.write(memory, noise(length, key));
  return memory;
}

function bfloat16s(kernels: DeviceKernels, length: number, key: string): DeviceBfloat16s {
  const memory = kernels.allocateBfloat16(length);
  kernels.write(memory, toBfloat16(noise(length, key)));
  return memory;
}

function fusedOf({ fused }: DeviceKernels) {
  if (fused === undefined) throw new Error('this device has no fused operations');
  return fused;
}

const [INPUTS, OUTPUTS, RANK] = [70, 131, 6];
type Beside = 'nothing' | 'a bias' | 'a residual' | 'what is there';
interface Form {
  readonly rows: number;
  readonly beside: Beside;
  readonly kind: 'float32' | 'bfloat16';
  readonly transpose: boolean;
  readonly inBfloat16?: boolean;
  readonly share?: boolean;
}

/** A product at once and by calls, and the dispatches of each. */
async function bothWays(kernels: DeviceKernels, form: Form) {
  const { rows, beside, kind, transpose, inBfloat16 = false, share: shared = true } = form;
  const weight =
    kind === 'float32' ? floats(kernels, INPUTS * OUTPUTS, 'W') : bfloat16s(kernels, INPUTS * OUTPUTS, 'W');
  const matrix = kernels.stored<DeviceFloats | DeviceBfloat16s>({
    weight,
    inputs: INPUTS,
    outputs: OUTPUTS,
    transpose,
  });
  const x = floats(kernels, rows * INPUTS, 'x');
  const up = inBfloat16 ? bfloat16s(kernels, RANK * OUTPUTS, 'B') : floats(kernels, RANK * OUTPUTS, 'B');
  const share = shared ? { x: floats(kernels, rows * RANK, 'x A'), packed: up, width: RANK } : undefined;
  const linear = (inBfloat16 ? kernels.bfloat16Linear : kernels.linear) as DeviceKernels['linear'];
  const run = (way: 'at once' | 'by calls') => {
    const out = floats(kernels, rows * OUTPUTS, 'out');
    const befores: Record<Beside, Before<DeviceFloats> | undefined> = {
      nothing: undefined,
      'a bias': { bias: floats(kernels, OUTPUTS, 'bias') },
      'a residual': { residual: floats(kernels, rows * OUTPUTS, 'residual') },
      'what is there': { residual: out },
    };
    const sizes = { rows, inputs: INPUTS, outputs: OUTPUTS };
    const given = { out, before: befores[beside], x, packed: matrix, share, ...sizes };
    const { dispatches } = kernels.counts;
    if (way === 'at once') fusedOf(kernels).linearOnto({ inBfloat16, ...given });
    else linearOntoByCalls({ ...kernels, linear }, given);
    return { out, dispatches: kernels.counts.dispatches - dispatches };
  };
  const [once, calls] = [run('at once'), run('by calls')];
  const [values, expected] = await kernels.read([once.out, calls.out]);
  return { values, expected, dispatches: [once.dispatches, calls.dispatches] };
}

describe('a product with its addend and an adapter’s share', () => {
  it.each<Form>([
    { rows: 3, beside: 'a bias', kind: 'bfloat16', transpose: false },
    { rows: 3, beside: 'what is there', kind: 'float32', transpose: false },
    { rows: 20, beside: 'a residual', kind: 'float32', transpose: true },
    { rows: 20, beside: 'nothing', kind: 'bfloat16', transpose: true, inBfloat16: true },
    { rows: 70, beside: 'a bias', kind: 'float32', transpose: false, inBfloat16: true },
    { rows: 70, beside: 'a residual', kind: 'bfloat16', transpose: false, share: false },
  ])('has in one dispatch the bits of its calls: %o', async (form) => {
    const { values, expected, dispatches } = await bothWays(await sharedKernels(), form);
    expect(values).toEqual(expected);
    expect(new Set(expected).size).toBeGreaterThan(100);
    expect(dispatches[0]).toBe(1);
    expect(dispatches[1]).toBeGreaterThan(1);
  });

  it('goes by its calls where a matrix fits no binding, or a bias shares a window with it', async () => {
    const { kernels } = await open({ binding: 4096 });
    const form = { rows: 3, beside: 'a bias', kind: 'float32', transpose: false } as const;
    const { values, expected, dispatches } = await bothWays(kernels, form);
    expect(values).toEqual(expected);
    expect(dispatches[0]).toBe(dispatches[1]);

    const whole = await sharedKernels();
    const all = floats(whole, 10 * 5 + 5, 'W and bias');
    const [weight, bias] = [all.subarray(0, 50), all.subarray(50)];
    const x = floats(whole, 10, 'x');
    const outs = [whole.allocate(5), whole.allocate(5)] as const;
    const packed = whole.stored({ weight, inputs: 10, outputs: 5, transpose: false });
    const given = { before: { bias }, x, packed, rows: 1, inputs: 10, outputs: 5 };
    fusedOf(whole).linearOnto({ inBfloat16: false, out: outs[0], ...given });
    linearOntoByCalls(whole, { out: outs[1], ...given });
    const [once, calls] = await whole.read(outs);
    expect(once).toEqual(calls);
  });
});

it('the gradient of a block of an adapter is the scaled gradient of the whole matrix', async () => {
  const kernels = await sharedKernels();
  const [rows, inputs, outputs] = [75, 9, 40];
  const [x, dOut] = [floats(kernels, rows * inputs, 'x'), floats(kernels, rows * outputs, 'dOut')];
  const whole = kernels.allocate(inputs * outputs);
  kernels.linearWeightGradient({ dWeight: whole, x, dOut, rows, inputs, outputs });
  // Rows 3 to 7 and columns 10 to 31 of it.
  const part = floats(kernels, 5 * 22, 'part');
  const [first] = await kernels.read([part]);
  const [xPart, dPart] = [x.subarray(3), dOut.subarray(10)];
  fusedOf(kernels).partOfWeightGradient({
    inBfloat16: false,
    dWeight: part,
    scale: 0.375,
    x: xPart,
    xStride: inputs,
    dOut: dPart,
    dOutStride: outputs,
    rows,
    inputs: 5,
    outputs: 22,
  });
  const [all, values] = await kernels.read([whole, part]);
  values.forEach((value, i) => {
    const sum = all[(3 + Math.floor(i / 22)) * outputs + 10 + (i % 22)] as number;
    const right = (first[i] as number) + 0.375 * sum;
    expect(Math.abs(value - right)).toBeLessThan(1e-6 * (1 + Math.abs(right)));
  });
});

it('turning and caching at once has the bits of the calls: what is attended, keys and values', async () => {
  const kernels = await sharedKernels();
  const shape = { heads: 6, kvHeads: 2, headDim: 10 };
  const [rows, capacity] = [11, 32];
  const width = (shape.heads + 2 * shape.kvHeads) * shape.headDim;
  const integers = (values: readonly number[]) => {
    const memory = kernels.allocateIntegers(values.length);
    kernels.write(memory, Int32Array.from(values));
    return memory;
  };
  const slots = integers([...new Array(8).fill(2), 0, 1, 3]);
  const positions = integers([0, 1, 2, 3, 4, 5, 6, 7, 0, 0, 0]);
  const alike = integers(new Array<number>(rows).fill(0));
  const table = floats(kernels, capacity * shape.headDim, 'table');
  const run = (way: 'at once' | 'by calls') => {
    const qkv = floats(kernels, rows * width, 'qkv');
    const out = kernels.allocate(rows * shape.heads * shape.headDim);
    const size = 4 * kernels.cacheSlotSize({ capacity, heads: shape });
    const [keys, values] = [kernels.allocate(size), kernels.allocate(size)];
    const attention = { out, keys, values, qkv, slots, positions, alike, rows, capacity, heads: shape };
    if (way === 'at once') fusedOf(kernels).ropeAttentionCached({ ...attention, table });
    else {
      kernels.rope({ qkv, table, positions, rows, heads: shape, inverse: false });
      kernels.attentionCached(attention);
    }
    return [out, keys, values];
  };
  const read = await kernels.read([...run('at once'), ...run('by calls')]);
  expect(read.slice(0, 3)).toEqual(read.slice(3));
  expect(read[0]?.every((value) => value !== 0)).toBe(true);
});

it('the gradient of a frozen gain is left out, and nothing else changes', async () => {
  const kernels = await sharedKernels();
  const [rows, width] = [5, 70];
  const [dOut, x] = [floats(kernels, rows * width, 'dOut'), floats(kernels, rows * width, 'x')];
  const [gain, inverse] = [floats(kernels, width, 'gain'), floats(kernels, rows, 'inverse')];
  const run = (dGain: DeviceFloats) => {
    const dx = floats(kernels, rows * width, 'dx');
    const { dispatches } = kernels.counts;
    kernels.rmsNormBackward({ dx, dGain, dOut, x, gain, inverse, rows, width });
    return { dx, dispatches: kernels.counts.dispatches - dispatches };
  };
  const [wanted, left] = [run(kernels.allocate(width)), run(kernels.allocate(0))];
  const [expected, values] = await kernels.read([wanted.dx, left.dx]);
  expect(values).toEqual(expected);
  expect([wanted.dispatches, left.dispatches]).toEqual([2, 1]);
});

const adapter = { rank: 3, alpha: 5, targets: PROJECTIONS };

it('a tick of two policies, each with its adapter by calls, has the log-probs that either’s trainer computes', async () => {
  const kernels = await sharedKernels();
  const config: DecoderConfig = { ...plain, attentionBias: 'qkv' };
  const base = new DecoderWeights(kernels, config);
  const drawn = new Float32Array(parameterCount(config));
  initialise(config, decoderTensors(config, drawn), 5);
  kernels.write(base.tensors.flat as DeviceFloats, drawn);
  base.changed();
  const sampler = new DecoderSampler(kernels, base);
  const models = new Map<string, PolicyModel>();
  for (const policy of ['first', 'second']) {
    const model = new PolicyModel(kernels, { base, adapter });
    kernels.write(
      model.trained as DeviceFloats,
      noise(model.parameters, policy).map((value) => value / 4),
    );
    model.weightsChanged();
    await sampler.load(policy, model.trained, 1, adapter);
    models.set(policy, model);
  }
  const requests = [...models.keys()].map((policy, id) => ({
    id,
    policy,
    prompt: [1, 2, 3],
    maxTokens: 4,
    temperature: 0.7,
    topK: 0,
    topP: 1,
    stopTokens: [],
    key: randomKey('draw', id),
  }));
  const results = await generate(sampler, requests, [2]);
  const [one, other] = results.map(({ logprobs }) => logprobs[0]);
  expect(one).not.toBe(other);
  for (const [i, { policy, prompt, temperature }] of requests.entries()) {
    const { tokens = [], logprobs = [] } = results[i] ?? {};
    const all = Int32Array.from([...prompt, ...tokens]);
    const mask = Uint8Array.from(all, (_, t) => Number(t >= prompt.length));
    const scored = await models.get(policy)?.score([{ tokens: all, mask, temperature }]);
    expect(logprobs).toEqual([...(scored?.logprobs[0]?.subarray(prompt.length) ?? [])]);
    expect(logprobs).toHaveLength(4);
  }
});

describe('a layer', () => {
  const prompt = [1, 2, 3];

  /** Dispatches of one tick, and of one micro-batch with layers computed again. */
  async function dispatches(layers: number) {
    const { kernels } = await openNothing();
    const config: DecoderConfig = { ...plain, layers, attentionBias: 'qkv' };
    const base = baseWeights(kernels, config, 'bfloat16');
    const model = new PolicyModel(kernels, { base, adapter }, { recompute: true });
    model.initialise(1);
    const counted = async (work: () => Promise<unknown>) => {
      await work(); // the first time packs matrices
      const before = kernels.counts.dispatches;
      await work();
      return kernels.counts.dispatches - before;
    };
    const sampler = new DecoderSampler(kernels, base);
    await sampler.load('policy', model.trained, 1, adapter);
    sampler.submit({
      id: 0,
      policy: 'policy',
      prompt,
      maxTokens: 9,
      temperature: 1,
      topK: 0,
      topP: 1,
      stopTokens: [],
      key: randomKey('draw'),
    });
    const tick = await counted(() => sampler.step());
    const sequence = { tokens: Int32Array.from(prompt), mask: Uint8Array.of(0, 1, 1), temperature: 1 };
    const batch = await counted(async () => {
      await model.accumulate([sequence], () => [Float32Array.of(0, 1, 1)]);
      model.discardGradient();
    });
    return { tick, batch };
  }

  it('with adapters on all projections has 13 dispatches a tick and 50 a micro-batch', async () => {
    const [two, three] = [await dispatches(2), await dispatches(3)];
    expect({ tick: three.tick - two.tick, batch: three.batch - two.batch }).toEqual({ tick: 13, batch: 50 });
  });
});
