/**
 * Trains and samples one policy step after step, as a run does, and prints what that does to memory: a JSON line with
 * the kernels' buffers allocated in the second half of the steps, and the bytes resident before and after those.
 *
 * usage: node --expose-gc --import tsx test/support/steady-loop.ts STEPS THREADS
 */

import { Engine } from '@drmas/engine/internal/embedded/thread/engine';
import { packSamples } from '@drmas/engine/internal/embedded/thread/sample-batch';
import { RandomStream, randomKey } from '@drmas/engine/math';
import { selectKernels } from '@drmas/engine/node';
import { plainAdamW } from './adamw.js';
import { countAllocations } from './count-allocations.js';

const POLICY = 0;
const config = {
  vocabSize: 256,
  width: 32,
  layers: 2,
  heads: 4,
  kvHeads: 2,
  headDim: 8,
  feedForward: 96,
  context: 128,
  ropeBase: 10_000,
  normEpsilon: 1e-6,
};
const optimizer = plainAdamW(1e-3);

const random = new RandomStream('steady loop');

/** Sequences of other lengths in every step; the first has the largest there are, which all memory is taken for. */
function samples(at: number) {
  return packSamples(
    Array.from({ length: 8 }, () => {
      const length = at === 0 ? 120 : random.integer(20, 120);
      return {
        tokens: Int32Array.from({ length }, () => random.integer(0, config.vocabSize - 1)),
        mask: new Uint8Array(length).fill(1, 1),
        behaviourLogprobs: new Float32Array(length).fill(-5),
        advantages: new Float32Array(length).fill(1),
        temperature: 1,
        policyVersion: 0,
        agent: 'agent',
      };
    }),
  );
}

async function step(engine: Engine, at: number): Promise<void> {
  const loss = { type: 'demonstrations' } as const;
  for (let half = 0; half < 2; half++) await engine.forwardBackward(POLICY, samples(at), { loss, normalizer: 1000 });
  await engine.optimStep(POLICY, { optimizer, clipNorm: 1 });
  engine.publish(POLICY);
  for (let id = 0; id < 12; id++) {
    const prompt = Array.from({ length: at === 0 ? 60 : random.integer(5, 60) }, () =>
      random.integer(0, config.vocabSize - 1),
    );
    const sampling = { temperature: 1, topP: 1, topK: 0, maxTokens: at === 0 ? 60 : random.integer(5, 60) };
    engine.submit(id, POLICY, { ...sampling, prompt, stopTokens: [], key: randomKey('steady', at, id) });
  }
  while (engine.busy) await engine.tick();
}

const [steps, threads] = process.argv.slice(2).map(Number) as [number, number];
const { kernels } = await selectKernels({ threads });
const counted = countAllocations(kernels);
const engine = new Engine(counted.kernels);
engine.createPolicy(POLICY, { name: 'policy', shape: config, precision: 'float32' }, { seed: 1 });

const resident = async () => {
  // The collector and finalizers free unreachable buffers. They run when nothing else runs.
  for (let i = 0; i < 3; i++) {
    globalThis.gc?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
  return process.memoryUsage.rss();
};
const run = async (from: number, to: number) => {
  const sizes = await counted.during(async () => {
    for (let at = from; at < to; at++) await step(engine, at);
  });
  return sizes.length;
};

await run(0, steps / 2);
const early = await resident();
const allocated = await run(steps / 2, steps);
console.log(JSON.stringify({ kernels: kernels.name, allocated, early, late: await resident() }));
