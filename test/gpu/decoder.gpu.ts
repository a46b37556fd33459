/** The decoder on a GPU's kernels, compared with the plain kernels: whole models and adapters, trained and sampled. */

import { type DecoderConfig, PROJECTIONS } from '@drmas/engine/contract';
import { PolicyModel } from '@drmas/engine/internal/model/decoder/policy-model';
import { DecoderSampler } from '@drmas/engine/internal/model/decoder/sampling/decoder-sampler';
import { decoderTensors, initialise } from '@drmas/engine/internal/model/decoder/weights/decoder-tensors';
import { DecoderWeights } from '@drmas/engine/internal/model/decoder/weights/model-weights';
import { createReferenceKernels, type Kernels } from '@drmas/engine/kernels';
import { RandomStream, randomKey } from '@drmas/engine/math';
import { parameterCount } from '@drmas/engine/model';
import { beforeAll, describe, expect, it } from 'vitest';
import { gemma, generate, lfm2, plain, randomSequence } from '../contracts/decoder.js';
import { plainAdamW } from '../support/adamw.js';
import { checkedKernels } from './opened-device.js';

/** Sizes differ, so that no two can be mixed up; rows fill no whole number of tiles. */
const rich: DecoderConfig = { ...plain, queryKeyNorm: true, attentionBias: 'qkvo' };
const adapter = { rank: 3, alpha: 5, targets: PROJECTIONS };
const configs = {
  'a whole model': rich,
  'an adapter, with layers computed again': rich,
  'a whole model of Gemma 3': { ...plain, ...gemma, layers: 3 },
  'a whole model of LFM2': { ...plain, ...lfm2 },
  'an adapter on a model of LFM2': { ...plain, ...lfm2 },
} as const satisfies Record<string, DecoderConfig>;
const kinds = Object.keys(configs) as (keyof typeof configs)[];
const STEPS = 2;

const random = new RandomStream('decoder on a GPU');
const sequences = [17, 2, 40, 9].map((length, i) => randomSequence(random, length, i % 2 === 0 ? 1 : 0.7));
const upstream = sequences.map(({ tokens }) => Float32Array.from(tokens, () => random.normal()));
const requests = Array.from({ length: 4 }, (_, id) => ({
  id,
  policy: 'policy',
  prompt: [1, 2, 3, 4].slice(0, 2 + (id % 3)),
  maxTokens: 6,
  temperature: id === 2 ? 0 : 0.7,
  topK: id === 1 ? 5 : 0,
  topP: id === 3 ? 0.8 : 1,
  stopTokens: [],
  key: randomKey('draw', id),
}));

/** Some steps of training, then samples with the log-probs of the trained model. */
async function train(kernels: Kernels, kind: (typeof kinds)[number]) {
  const config = configs[kind];
  const drawn = new Float32Array(parameterCount(config));
  initialise(config, decoderTensors(config, drawn), 5);
  const base = new DecoderWeights(kernels, config);
  kernels.write(base.tensors.flat, drawn);
  base.changed();
  const whole = !kind.startsWith('an adapter');
  const model = new PolicyModel(kernels, whole ? config : { base, adapter }, { recompute: !whole });
  if (whole) {
    kernels.write(model.trained, drawn);
    model.weightsChanged();
  } else model.initialise(7);
  const steps = [];
  for (let step = 0; step < STEPS; step++) {
    const { logprobs, entropies, gradientNorm } = await model.accumulate(sequences, (indices) =>
      indices.map((i) => upstream[i] as Float32Array),
    );
    const [summed] = await kernels.read([model.gradient]);
    const gradient = summed.map((g) => g / gradientNorm);
    await model.optimStep({ optimizer: plainAdamW(1e-3), clipNorm: 1 });
    const [weights] = await kernels.read([model.trained]);
    const totals = [entropies.reduce((sum, row) => row.reduce((a, b) => a + b, sum), 0), gradientNorm];
    steps.push({ logprobs: logprobs.flatMap((row) => [...row]), totals, gradient, weights });
  }
  const sampler = new DecoderSampler(kernels, base);
  sampler.load('policy', model.trained, 1, whole ? undefined : adapter);
  const results = await generate(sampler, requests, [4]);
  const scored = await model.score(
    results.map(({ tokens }, i) => {
      const { prompt, temperature } = requests[i] as (typeof requests)[number];
      const all = Int32Array.from([...prompt, ...tokens]);
      const mask = Uint8Array.from(all, (_, t) => (t < prompt.length ? 0 : 1));
      return { tokens: all, mask, temperature: temperature === 0 ? 1 : temperature };
    }),
  );
  return {
    steps,
    tokens: results.map(({ tokens }) => tokens),
    sampled: results.map(({ logprobs }) => logprobs),
    scored: scored.logprobs.map((row, i) => [...row.subarray(requests[i]?.prompt.length)]),
  };
}

const gap = (values: ArrayLike<number>, expected: ArrayLike<number>) =>
  Array.from(expected, (right, i) => Math.abs((values[i] as number) - right) / (1 + Math.abs(right))).reduce(
    (most, each) => Math.max(most, each),
    0,
  );

describe.each(kinds)('%s on a GPU', (kind) => {
  let kernels: Kernels;
  let trained: Awaited<ReturnType<typeof train>>;
  let plain: Awaited<ReturnType<typeof train>>;
  beforeAll(async () => {
    kernels = await checkedKernels();
    trained = await train(kernels, kind);
    plain = await train(createReferenceKernels(), kind);
  });

  it('trains as on the plain kernels: log-probs, norms, gradients and weights', () => {
    expect(trained.steps.length).toBe(STEPS);
    trained.steps.forEach((step, i) => {
      const expected = plain.steps[i] as typeof step;
      expect(gap(step.logprobs, expected.logprobs)).toBeLessThan(2e-5);
      expect(gap(step.totals, expected.totals)).toBeLessThan(2e-5);
      expect(gap(step.gradient, expected.gradient)).toBeLessThan(2e-5);
      expect(gap(step.weights, expected.weights)).toBeLessThan(2e-5);
    });
  });

  it('samples the tokens of the plain kernels, with the very log-probs that the trainer computes', () => {
    expect(trained.tokens).toEqual(plain.tokens);
    expect(trained.sampled).toEqual(trained.scored);
  });

  it('gives the same bits again', async () => {
    expect(await train(kernels, kind)).toEqual(trained);
  });
});
