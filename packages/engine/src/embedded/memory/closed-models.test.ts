/** Closed models leave nothing in a device's memory, except the bases that adapters share. */

import { createCountingDevice } from '@drmas/webgpu/internal/kernels/counting-device';
import { createWebgpuKernels } from '@drmas/webgpu/internal/kernels/webgpu';
import { describe, expect, it } from 'vitest';
import { plain } from '../../../../../test/contracts/decoder.js';
import { plainAdamW } from '../../../../../test/support/adamw.js';
import { sampleOf } from '../../../../../test/support/samples.js';
import { randomKey } from '../../base/core/random.js';
import { Engine } from '../thread/engine.js';
import type { PolicyShape } from '../thread/resident-policy.js';
import { packSamples } from '../thread/sample-batch.js';

const kernels = createWebgpuKernels(createCountingDevice(), 'counted');
const held = () => ({ buffers: kernels.counts.buffers, bytes: kernels.counts.bytes });

const BASE = 1000;
const adapted: PolicyShape = { base: BASE, adapter: { rank: 2, alpha: 4, targets: ['q', 'v', 'down'] } };

/** Opens a policy, samples and trains three versions, keeps two of them, and closes the policy. */
async function lifeOf(engine: Engine, id: number, shape: PolicyShape): Promise<void> {
  engine.createPolicy(id, { name: 'short', shape, precision: 'float32' }, { seed: id });
  const sample = sampleOf([1, 2, 3, 4], [-1, -1, -1, -1]);
  for (let version = 0; version < 3; version++) {
    engine.publish(id, 2);
    await engine.forwardBackward(id, packSamples([sample]), { loss: { type: 'demonstrations' }, normalizer: 1 });
    await engine.optimStep(id, { optimizer: plainAdamW(1e-3), clipNorm: 1 });
    const sampling = { temperature: 1, topP: 1, topK: 0, maxTokens: 2, stopTokens: [], key: randomKey('closed', id) };
    engine.submit(version, id, { ...sampling, prompt: [1, 2] });
    while (engine.busy) await engine.tick();
  }
  engine.dropPolicy(id);
}

async function leavesNothing(shape: PolicyShape, rounds: number): Promise<void> {
  const engine = new Engine(kernels);
  engine.createBase(BASE, plain, { seed: 1 });
  await lifeOf(engine, 0, shape); // shaders' own memory, and the cache of the base, stay
  const before = held();
  for (let round = 1; round <= rounds; round++) {
    await lifeOf(engine, round, shape);
    expect(held()).toEqual(before);
  }
  engine.createPolicy(rounds + 1, { name: 'open', shape, precision: 'float32' }, { seed: 1 });
  expect(held().bytes).toBeGreaterThan(before.bytes);
  engine.dropPolicy(rounds + 1);
  expect(held()).toEqual(before);
}

describe.each([
  ['a model of its own', plain],
  ['an adapter', adapted],
] as const)('%s leaves nothing on the device when it is closed', (_, shape) => {
  it('in five rounds', () => leavesNothing(shape, 5));
  it('in fifty rounds', { tags: 'verify' }, () => leavesNothing(shape, 50));
});

it('a base whose file cannot be read to its end leaves nothing', () => {
  const before = held();
  const engine = new Engine(kernels);
  engine.createBase(BASE, plain, 'bfloat16');
  expect(held().bytes).toBeGreaterThan(before.bytes);
  engine.beginState({ kind: 'base', id: BASE });
  engine.endState({ kind: 'base', id: BASE }, false);
  expect(held()).toEqual(before);
});
