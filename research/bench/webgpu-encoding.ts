/**
 * The host's time for a decoding step and a micro-batch, on a backend of Dawn's that executes nothing: JavaScript,
 * encoding, and one wait. `npx tsx research/bench/webgpu-encoding.ts`. The layers have the shape of Qwen2.5-0.5B, with
 * few columns, because the host's time does not depend on the width.
 */

import { type DecoderConfig, PROJECTIONS } from '@drmas/engine/contract';
import { PolicyModel } from '@drmas/engine/internal/model/decoder/policy-model';
import { DecoderSampler } from '@drmas/engine/internal/model/decoder/sampling/decoder-sampler';
import { baseWeights } from '@drmas/engine/internal/model/decoder/weights/model-weights';
import { randomKey } from '@drmas/engine/math';
import { findAdapter } from '@drmas/webgpu/internal/kernels/open-device';
import { createWebgpuKernels } from '@drmas/webgpu/internal/kernels/webgpu';

const config: DecoderConfig = {
  vocabSize: 128,
  width: 32,
  layers: 24,
  heads: 14,
  kvHeads: 2,
  headDim: 4,
  feedForward: 32,
  context: 512,
  ropeBase: 1e6,
  normEpsilon: 1e-6,
  attentionBias: 'qkv',
};
const adapter = { rank: 4, alpha: 8, targets: PROJECTIONS };
const REQUESTS = 32;
const SEQUENCES = 4;
const LENGTH = 257;
const REPETITIONS = 60;
const WARM = 10;

const found = await findAdapter('null');
const kernels = createWebgpuKernels(await found.open(), found.name);
const base = baseWeights(kernels, config, 'bfloat16');
const model = new PolicyModel(kernels, { base, adapter }, { recompute: true });
model.initialise(1);

/** Runs the work many times and prints the time of one run. */
async function measure(what: string, once: () => Promise<unknown>): Promise<void> {
  for (let i = 0; i < WARM; i++) await once();
  const warm = kernels.counts;
  const wall: number[] = [];
  const started = process.cpuUsage();
  for (let i = 0; i < REPETITIONS; i++) {
    const begin = performance.now();
    await once();
    wall.push(performance.now() - begin);
  }
  const { user, system } = process.cpuUsage(started);
  const { dispatches, submits, bindGroups } = kernels.counts;
  const ordered = wall.toSorted((a, b) => a - b);
  const line = {
    what,
    dispatches: (dispatches - warm.dispatches) / REPETITIONS,
    submits: (submits - warm.submits) / REPETITIONS,
    newBindGroups: (bindGroups - warm.bindGroups) / REPETITIONS,
    processorMs: round((user + system) / 1e3 / REPETITIONS),
    bestMs: round(ordered[0] as number),
    medianMs: round(ordered[REPETITIONS / 2] as number),
  };
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

const round = (ms: number) => Math.round(ms * 100) / 100;

const sampler = new DecoderSampler(kernels, base);
await sampler.load('policy', model.trained, 1, adapter);
for (let id = 0; id < REQUESTS; id++)
  sampler.submit({
    id,
    policy: 'policy',
    prompt: [1, 2, 3, 4],
    maxTokens: 400,
    temperature: 1,
    topK: 0,
    topP: 1,
    stopTokens: [],
    key: randomKey('draw', id),
  });
await measure(`decoding tick, ${REQUESTS} requests`, () => sampler.step());

const sequences = Array.from({ length: SEQUENCES }, () => ({
  tokens: new Int32Array(LENGTH).fill(3),
  mask: Uint8Array.from({ length: LENGTH }, (_, t) => (t > 0 ? 1 : 0)),
  temperature: 1,
}));
const upstream = (indices: readonly number[]) => indices.map(() => new Float32Array(LENGTH).fill(0.01));
await measure(`micro-batch, ${SEQUENCES * (LENGTH - 1)} rows`, () => model.accumulate(sequences, upstream));
kernels.dispose();
