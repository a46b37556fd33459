/** The memory of a GPU in the plan's forecast, compared with the memory that the engine allocates. */

import type { PlannedPolicy } from '@drmas/engine/backends';
import { type DecoderConfig, PROJECTIONS } from '@drmas/engine/contract';
import { deviceMemoryPlan } from '@drmas/engine/internal/embedded/memory/device-footprint';
import { Engine } from '@drmas/engine/internal/embedded/thread/engine';
import type { PolicyShape } from '@drmas/engine/internal/embedded/thread/resident-policy';
import { packSamples } from '@drmas/engine/internal/embedded/thread/sample-batch';
import { randomKey } from '@drmas/engine/math';
import type { DeviceKernels } from '@drmas/webgpu/internal/kernels/device-kernels';
import { openDeviceKernels } from '@drmas/webgpu/internal/kernels/open-kernels';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { plainAdamW } from '../support/adamw.js';
import { sampleOf } from '../support/samples.js';

const config: DecoderConfig = {
  vocabSize: 512,
  width: 64,
  layers: 3,
  heads: 4,
  kvHeads: 2,
  headDim: 16,
  feedForward: 192,
  context: 256,
  ropeBase: 10_000,
  normEpsilon: 1e-6,
};
const LONGEST = 60;
const settings = { rank: 8, alpha: 8, targets: PROJECTIONS };
const optimizer = plainAdamW(1e-3);

let kernels: DeviceKernels;
beforeAll(async () => {
  kernels = await openDeviceKernels();
});
afterAll(() => kernels?.dispose());

/** Trains a step, and plays before and after it; answers are a quarter of a sequence. */
async function lifeOf(engine: Engine, id: number, shape: PolicyShape): Promise<void> {
  engine.createPolicy(id, { name: 'policy', shape, precision: 'float32' }, { seed: id });
  const play = async () => {
    engine.publish(id);
    for (let i = 0; i < 20; i++) {
      const sampling = {
        temperature: 1,
        topP: 1,
        topK: 0,
        maxTokens: 2,
        stopTokens: [],
        key: randomKey('plan', id, i),
      };
      engine.submit(i, id, { ...sampling, prompt: Array.from({ length: LONGEST - 2 }, (_, t) => (t * i) % 500) });
    }
    while (engine.busy) await engine.tick();
  };
  await play();
  const sample = sampleOf(
    Array.from({ length: LONGEST - 1 }, (_, t) => t),
    new Array(LONGEST - 1).fill(1),
    {
      mask: new Uint8Array(LONGEST).fill(1, Math.ceil(0.75 * LONGEST)),
    },
  );
  const samples = packSamples(new Array(17).fill(sample));
  await engine.forwardBackward(id, samples, { loss: { type: 'demonstrations' }, normalizer: 1 });
  await engine.optimStep(id, { optimizer, clipNorm: 1 });
  await play();
}

const planned: PlannedPolicy = { name: '', config, precision: 'float32', optimizer, agents: 1, versions: 1 };
const adapter = { settings, base: 'base', kept: 'bfloat16' } as const;

it.each([
  ['a model of its own', [planned], [config]],
  ['two adapters on a base in bfloat16', [1, 2].map((i) => ({ ...planned, name: `${i}`, adapter })), [1, 2]],
] as const)('%s takes the planned memory, within a tenth', async (_, policies, shapes) => {
  const { total: { total } = { total: 0 } } = await deviceMemoryPlan(
    { recompute: false, longest: LONGEST, written: 0.25 },
    policies,
  );
  const before = kernels.counts.bytes;
  const engine = new Engine(kernels);
  if (shapes.length > 1) engine.createBase(0, config, 'bfloat16');
  for (const [i, shape] of shapes.entries())
    await lifeOf(engine, i + 1, typeof shape === 'number' ? { base: 0, adapter: settings } : shape);
  const taken = kernels.counts.bytes - before;
  expect(taken / total).toBeGreaterThan(0.9);
  expect(taken / total).toBeLessThan(1.1);
  for (const i of shapes.keys()) engine.dropPolicy(i + 1);
});
