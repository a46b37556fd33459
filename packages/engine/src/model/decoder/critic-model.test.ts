import { describe, expect, it } from 'vitest';
import { plain, randomSequence, shake } from '../../../../../test/contracts/decoder.js';
import { plainAdamW } from '../../../../../test/support/adamw.js';
import { expectGradient } from '../../../../../test/support/expectations.js';
import { onHost, tensorsOnHost } from '../../../../../test/support/on-host.js';
import { RandomStream } from '../../base/core/random.js';
import { createReferenceKernels } from '../../tensor/reference/reference.js';
import { CriticModel } from './critic-model.js';
import type { Sequence } from './packed-batch.js';
import { initialise } from './weights/decoder-tensors.js';
import { DecoderWeights, type ModelSource } from './weights/model-weights.js';

const kernels = createReferenceKernels();
const random = new RandomStream('critic test');
const sequences = [17, 2, 30, 9, 1, 23].map((length) => randomSequence(random, length));
const written = sequences.reduce((sum, { mask }) => sum + mask.reduce((n, one) => n + one, 0), 0);
const base = new DecoderWeights(kernels, plain);
initialise(plain, tensorsOnHost(base.tensors), 5);

const sources: Readonly<Record<string, ModelSource>> = {
  'a decoder': plain,
  'a decoder with everything': {
    ...plain,
    headDim: 18,
    attentionBias: 'qkvo',
    queryKeyNorm: true,
    untiedOutput: true,
  },
  'an adapter': { base, adapter: { rank: 3, alpha: 6, targets: ['q', 'v', 'o', 'down'] } },
};

/** Somewhere in the middle of its training. */
function trained(source: ModelSource): CriticModel {
  const model = new CriticModel(kernels, source);
  const [trunk, head] = [onHost(model.trunk), onHost(model.head)];
  if (!('base' in source || 'trunk' in source)) {
    const weights = new DecoderWeights(kernels, source);
    initialise(source, tensorsOnHost(weights.tensors), 3);
    shake(weights.tensors, new RandomStream('critic weights'));
    trunk.set(onHost(weights.tensors.flat));
  } else for (let i = 0; i < trunk.length; i++) trunk[i] = random.normal() / 3;
  for (let i = 0; i < head.length; i++) head[i] = random.normal();
  model.trunkChanged();
  return model;
}

describe.each(Object.entries(sources))('a critic of %s', (_, source) => {
  it('has the gradient that finite differences give, in trunk and head', async () => {
    const model = trained(source);
    const upstream = sequences.map(({ tokens }) => Float32Array.from(tokens, () => random.normal()));
    const loss = async () => {
      model.trunkChanged();
      return (await model.values(sequences)).reduce(
        (sum, row, s) => sum + row.reduce((a, x, t) => a + x * (upstream[s]?.[t] ?? 0), 0),
        0,
      );
    };
    await model.accumulate(sequences, (index) => upstream[index] as Float32Array);
    for (const part of ['trunk', 'head'] as const) {
      const weights = onHost(model[part]);
      const gradient = onHost(model.gradient[part]).slice();
      expect(Math.hypot(...gradient), part).toBeGreaterThan(0);
      await expectGradient(part, { weights, gradient, loss, step: 1e-3, random });
    }
  });

  it('gives a token the same value whatever else it is asked for, and none where nothing was written', async () => {
    const model = trained(source);
    const together = await model.values(sequences);
    for (const [s, sequence] of sequences.entries()) {
      expect((await model.values([sequence]))[0]).toEqual(together[s]);
      sequence.mask.forEach((one, t) => {
        expect(together[s]?.[t] === 0).toBe(one === 0);
      });
    }
  });

  it('computes a chain of turns in one pass: the bits of their values one by one, the sum of their gradients', async () => {
    const model = trained(source);
    const { tokens } = randomSequence(random, 30);
    const spans = [
      [4, 9],
      [9, 12],
      [20, 30],
    ] as const;
    const turns = spans.map(([start, end]) => ({
      tokens: tokens.subarray(0, end),
      mask: new Uint8Array(end).fill(1, start),
      temperature: 1,
    }));
    const mask = new Uint8Array(tokens.length);
    for (const [start, end] of spans) mask.fill(1, start, end);
    const chain = { tokens, mask, temperature: 1 };
    const [together] = await model.values([chain]);
    (await model.values(turns)).forEach((row, i) => {
      const [start, end] = spans[i] as (typeof spans)[number];
      expect(row.subarray(start)).toEqual(together?.subarray(start, end));
    });
    const upstream = Float32Array.from(tokens, () => random.normal());
    const gradientOf = async (some: readonly Sequence[]) => {
      const copy = trained(source);
      onHost(copy.trunk).set(onHost(model.trunk));
      onHost(copy.head).set(onHost(model.head));
      copy.trunkChanged();
      await copy.accumulate(some, () => upstream);
      return copy.gradient;
    };
    const gradients = [await gradientOf([chain]), await gradientOf(turns)];
    for (const part of ['trunk', 'head'] as const) {
      const [whole, apart] = gradients.map((gradient) => onHost(gradient[part])) as [Float32Array, Float32Array];
      const distance = Math.hypot(...whole.map((value, i) => value - (apart[i] as number)));
      expect(distance).toBeLessThan(2e-6 * Math.hypot(...apart));
    }
  });

  it('begins at 0 and learns returns', async () => {
    const model = new CriticModel(kernels, source);
    onHost(model.trunk).set(onHost(trained(source).trunk));
    model.trunkChanged();
    expect((await model.values(sequences)).every((row) => row.every((value) => value === 0))).toBe(true);
    const errors: number[] = [];
    const optimizer = plainAdamW(0.02);
    for (let i = 0; i < 12; i++) {
      let error = 0;
      await model.accumulate(sequences, (index, values) => {
        const { tokens, mask } = sequences[index] as (typeof sequences)[number];
        const distance = Array.from(values, (value, t) => (mask[t] === 1 ? value - (tokens[t - 1] as number) / 6 : 0));
        error += distance.reduce((sum, d) => sum + d * d, 0) / written;
        return distance.map((d) => (2 * d) / written);
      });
      errors.push(error);
      expect(await model.optimStep({ optimizer, clipNorm: 1 })).toMatchObject({ applied: true });
    }
    expect(errors.at(-1)).toBeLessThan((errors[0] as number) * 0.7);
  });
});

it('a critic drops a gradient that is not a number', async () => {
  const model = trained(plain);
  const before = await model.values(sequences);
  await model.accumulate(sequences, (index) =>
    new Float32Array((sequences[index] as { mask: Uint8Array }).mask.length).fill(Number.NaN),
  );
  const optimizer = { type: 'sgd', learningRate: 1, momentum: 0, nesterov: false, weightDecay: 0 } as const;
  expect((await model.optimStep({ optimizer, clipNorm: 1 })).applied).toBe(false);
  expect(await model.values(sequences)).toEqual(before);
  expect(await model.optimStep({ optimizer, clipNorm: 1 })).toEqual({ applied: true, norm: 0 });
});
