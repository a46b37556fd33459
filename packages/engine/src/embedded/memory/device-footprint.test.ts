import { createCountingDevice } from '@drmas/webgpu/internal/kernels/counting-device';
import type { FoundAdapter } from '@drmas/webgpu/internal/kernels/open-device';
import { describe, expect, it } from 'vitest';
import { plainAdamW } from '../../../../../test/support/adamw.js';
import type { PlannedPolicy } from '../../backends/backend-declaration.js';
import { DeviceError } from '../../base/core/errors.js';
import { type DecoderConfig, PROJECTIONS } from '../../contract/architecture.js';
import { deviceMemoryPlan } from './device-footprint.js';

const config: DecoderConfig = {
  vocabSize: 4096,
  width: 128,
  layers: 4,
  heads: 4,
  kvHeads: 2,
  headDim: 32,
  feedForward: 512,
  context: 512,
  ropeBase: 10_000,
  normEpsilon: 1e-6,
};
const whole: PlannedPolicy = {
  name: 'solver',
  config,
  precision: 'float32',
  optimizer: plainAdamW(1e-3),
  agents: 1,
  versions: 1,
};
const adapter = { settings: { rank: 4, alpha: 4, targets: PROJECTIONS }, base: 'base', kept: 'bfloat16' } as const;
const matrices = 4096 * 128 + 4 * (128 * (128 + 2 * 64) + 128 * 128 + 3 * 128 * 512);
const parameters = matrices + 4 * 2 * 128 + 128;

const none = () => Promise.reject(new DeviceError('absent', 'no driver offers a GPU'));
const adapterOf = (buffer: number): FoundAdapter => ({
  name: 'a small one',
  features: [],
  buffer,
  binding: buffer,
  software: false,
  open: async () => createCountingDevice(buffer),
});
const planOf = (planned: readonly PlannedPolicy[], recompute = false, find: () => Promise<FoundAdapter> = none) =>
  deviceMemoryPlan({ recompute, longest: 200, written: 1 }, planned, find);

describe('the memory of a GPU', () => {
  it('of a whole model: weights for trainer and sampler, a gradient, two moments, and what passes need', async () => {
    const { policies, total, notes } = await planOf([whole]);
    const { weights = 0, gradients, optimizer, activations = 0 } = policies.solver ?? {};
    expect(weights).toBeGreaterThanOrEqual(2 * 4 * parameters);
    expect(weights).toBeLessThan(1.02 * 2 * 4 * parameters);
    expect([gradients, optimizer]).toEqual([4 * parameters, 8 * parameters]);
    expect(activations).toBeGreaterThan(4 * 1000 * 4 * 3 * 512); // of the batch, the widest tensors of all layers
    const { bases = 0, cache = 0, total: all = 0 } = total ?? {};
    expect(bases).toBe(0);
    expect(all / (weights + 12 * parameters + activations + cache)).toBeCloseTo(1, 2);
    expect(notes).toEqual(["memory is a GPU's, and there is none here: no driver offers a GPU"]);
  });

  it('has a base once, in bfloat16 where its files have it, whatever the adapters on it', async () => {
    const policies = ['a', 'b', 'c'].map((name) => ({ ...whole, name, adapter }));
    const { total } = await planOf(policies);
    expect(total?.bases).toBeGreaterThanOrEqual(2 * matrices);
    expect(total?.bases).toBeLessThan(1.02 * 2 * matrices + 64 * 1024);
    const [one, three] = [(await planOf([{ ...whole, adapter }])).total, total];
    expect(three?.cache).toBe(one?.cache);
  });

  it('is less where layers are computed again, and more for several agents and versions', async () => {
    const totalOf = async (changes: Partial<PlannedPolicy>, recompute = false) =>
      (await planOf([{ ...whole, ...changes }], recompute)).total?.total ?? 0;
    const plain = await totalOf({});
    const ofTwoLayers = 2 * 4 * 1000 * (4 * 128 + 3 * 512);
    expect(plain - (await totalOf({}, true))).toBeGreaterThan(0.8 * ofTwoLayers);
    expect((await totalOf({ agents: 3 })) - plain).toBeGreaterThanOrEqual(4 * parameters);
    expect((await totalOf({ versions: 2 })) - plain).toBeGreaterThanOrEqual(4 * parameters);
  });

  it('is compared with the largest buffer that the GPU has', async () => {
    const of = async (buffer: number) => planOf([whole], false, async () => adapterOf(buffer));
    const [large, small] = [await of(2 ** 30), await of(2 ** 20)];
    expect(large.notes?.join()).toMatch(/^memory is a GPU's, and a small one has buffers as large; how much/);
    expect(small.notes?.join()).toMatch(/the run does not fit a small one: a buffer of \d+ bytes: this GPU has none/);
    expect(small.total).toEqual((await planOf([whole])).total);
    // The memory of passes is allocated in pieces, so only single tensors (a block's logits) have to fit a buffer.
    const pieces = await of(2 ** 23);
    expect(pieces.notes?.join()).toMatch(/has buffers as large/);
    expect(pieces.total?.total).toBeLessThan(1.1 * (large.total?.total ?? 0));
  });

  it('is that of the policies whose sizes are known', async () => {
    const { policies, total } = await planOf([whole, { ...whole, name: 'other', config: undefined }]);
    expect(Object.keys(policies)).toEqual(['solver']);
    expect(total).toBeUndefined();
  });
});
