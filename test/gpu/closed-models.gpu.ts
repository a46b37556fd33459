/** What a device holds of models that come and go: nothing once they are closed, but the bases that adapters share. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Engine } from '../../src/backends/embedded/thread/engine.js';
import type { PolicyShape } from '../../src/backends/embedded/thread/resident-policy.js';
import { packSamples } from '../../src/backends/embedded/thread/sample-batch.js';
import { randomKey } from '../../src/core/random.js';
import type { DeviceKernels } from '../../src/tensor/webgpu/device-kernels.js';
import { openDeviceKernels } from '../../src/tensor/webgpu/open-kernels.js';
import { plain } from '../contracts/decoder.js';
import { plainAdamW } from '../support/adamw.js';
import { sampleOf } from '../support/samples.js';

let kernels: DeviceKernels;
beforeAll(async () => {
  kernels = await openDeviceKernels();
});
afterAll(() => kernels?.dispose());

const held = () => ({ buffers: kernels.counts.buffers, bytes: kernels.counts.bytes });

const BASE = 1000;
const adapted: PolicyShape = { base: BASE, adapter: { rank: 2, alpha: 4, targets: ['q', 'v', 'down'] } };

/** Opens a policy, plays and trains it as often as there are versions, of which it keeps two, and closes it. */
async function lifeOf(engine: Engine, id: number, shape: PolicyShape, versions: number): Promise<void> {
  engine.createPolicy(id, { name: 'short', shape, precision: 'float32' }, { seed: id });
  const sample = sampleOf([1, 2, 3, 4], [-1, -1, -1, -1]);
  for (let version = 0; version < versions; version++) {
    engine.publish(id, 2);
    await engine.forwardBackward(id, packSamples([sample]), { loss: { type: 'demonstrations' }, normalizer: 1 });
    await engine.optimStep(id, { optimizer: plainAdamW(1e-3), clipNorm: 1 });
    const sampling = { temperature: 1, topP: 1, topK: 0, maxTokens: 2, stopTokens: [], key: randomKey('closed', id) };
    engine.submit(version, id, { ...sampling, prompt: [1, 2] });
    while (engine.busy) await engine.tick();
  }
  engine.dropPolicy(id);
}

it.each([
  ['a model of its own', plain],
  ['an adapter', adapted],
] as const)('%s leaves nothing on the device when it is closed, in fifty rounds', async (_, shape) => {
  const engine = new Engine(kernels);
  engine.createBase(BASE, plain, { seed: 1 });
  await lifeOf(engine, 0, shape, 3); // shaders' own memory, and the cache of the base, stay
  const before = held();
  for (let round = 1; round <= 50; round++) {
    await lifeOf(engine, round, shape, round === 50 ? 3 : 1);
    expect(held()).toEqual(before);
  }
  engine.createPolicy(51, { name: 'open', shape, precision: 'float32' }, { seed: 1 });
  expect(held().bytes).toBeGreaterThan(before.bytes);
  engine.dropPolicy(51);
  expect(held()).toEqual(before);
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
