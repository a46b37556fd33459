import type { DecoderConfig } from '@drmas/engine/contract';
import type { DecoderOptions } from '@drmas/engine/internal/model/decoder/decoder';
import { PolicyModel } from '@drmas/engine/internal/model/decoder/policy-model';
import {
  DecoderSampler,
  type SamplerRequest,
  type SamplerResult,
} from '@drmas/engine/internal/model/decoder/sampling/decoder-sampler';
import type { DecoderTensors } from '@drmas/engine/internal/model/decoder/weights/decoder-tensors';
import { DecoderWeights } from '@drmas/engine/internal/model/decoder/weights/model-weights';
import type { Kernels } from '@drmas/engine/kernels';
import { RandomStream, randomKey } from '@drmas/engine/math';
import type { Sequence } from '@drmas/engine/model';
import { describe, expect, it } from 'vitest';
import { plainAdamW } from '../support/adamw.js';
import { expectGradient, expectSameBits } from '../support/expectations.js';
import { onHost, tensorsOnHost } from '../support/on-host.js';

/** A small decoder without any feature of its own. */
export const plain: DecoderConfig = {
  vocabSize: 13,
  width: 24,
  layers: 2,
  heads: 4,
  kvHeads: 2,
  headDim: 6,
  feedForward: 20,
  context: 40,
  ropeBase: 10_000,
  normEpsilon: 1e-6,
};

/** The features of Gemma 3: two layers have a window, the last one or the one between them sees all positions. */
export const gemma = {
  headDim: 10,
  queryKeyNorm: true,
  gate: 'gelu',
  offsetNorms: true,
  resultNorms: true,
  scaledEmbedding: true,
  scoreDivisor: 7,
  slidingWindow: { positions: 4, layers: [0, 2], ropeBase: 100 },
} as const satisfies Partial<DecoderConfig>;

/** The features of LFM2: the first and the last one of three layers convolve. */
export const lfm2 = {
  layers: 3,
  queryKeyNorm: true,
  convolution: { taps: 3, layers: [0, 2] },
} as const satisfies Partial<DecoderConfig>;

/** A decoder without further features, and one with all that can stand together. */
export const extremes: Readonly<Record<string, DecoderConfig>> = {
  plain,
  'with everything': {
    ...plain,
    headDim: 18,
    attentionBias: 'qkvo',
    queryKeyNorm: true,
    untiedOutput: true,
    ropeScaling: { type: 'llama3', factor: 4, lowFrequencyFactor: 1, highFrequencyFactor: 4, originalContext: 20 },
  },
};

/** One configuration a feature. Sizes differ so that no two can be mixed up. */
export const features: Readonly<Record<string, DecoderConfig>> = {
  'with biases on queries, keys and values': { ...plain, attentionBias: 'qkv' },
  'with biases on all of attention': { ...plain, attentionBias: 'qkvo' },
  'with normalised queries and keys': { ...plain, queryKeyNorm: true, headDim: 10 },
  'with a head of its own': { ...plain, untiedOutput: true },
  'with stretched positions': { ...plain, ropeScaling: { type: 'linear', factor: 3 } },
  'with a layer that does not rotate': { ...plain, unrotatedLayers: [0] },
  'of Gemma 3': {
    ...plain,
    ...gemma,
    layers: 3,
    ropeScaling: { type: 'linear', factor: 3 },
  },
  'of LFM2': { ...plain, ...lfm2 },
};

/** A decoder without attention, which only slow tests try: LFM2 has every kernel of it. */
export const convolutions = {
  'of convolutions alone': { ...plain, ...lfm2, layers: 2, convolution: { taps: 4, layers: [0, 1] } },
};

/** Moves biases and gains away from 0 and 1, so that leaving one out shows. */
export function shake(tensors: DecoderTensors, random: RandomStream): void {
  for (const layer of tensorsOnHost(tensors).layers) {
    const { qkvBias, attentionOutBias, queryNorm, keyNorm, attentionResultNorm, feedForwardResultNorm } = layer;
    for (const tensor of [qkvBias, attentionOutBias, queryNorm, keyNorm, attentionResultNorm, feedForwardResultNorm])
      for (let i = 0; i < tensor.length; i++) tensor[i] = (tensor[i] as number) + random.normal() / 2;
  }
}

function randomise(model: PolicyModel): void {
  model.initialise(3);
  shake(model.tensors, new RandomStream('decoder weights'));
  model.weightsChanged();
}

export function randomSequence(random: RandomStream, length: number, temperature = 1): Sequence {
  return {
    tokens: Int32Array.from({ length }, () => random.integer(0, plain.vocabSize - 1)),
    mask: Uint8Array.from({ length }, (_, t) => (t > 0 && random.chance(0.6) ? 1 : 0)),
    temperature,
  };
}

/** Runs requests to their end, submitting them in waves of the given sizes. */
export async function generate(
  sampler: DecoderSampler,
  requests: readonly SamplerRequest[],
  waves: readonly number[],
): Promise<SamplerResult[]> {
  const results: SamplerResult[] = [];
  let next = 0;
  let wave = 0;
  while (next < requests.length || sampler.busy) {
    const size = waves[wave++ % waves.length] ?? 1;
    for (const request of requests.slice(next, next + size)) sampler.submit(request);
    next += size;
    results.push(...(await sampler.step()));
  }
  return results.sort((a, b) => a.id - b.id);
}

/** The contract of the decoder on every kernel set: right gradients, and bits that do not depend on batching. */
export function decoderContract(name: string, create: () => Kernels, configs = extremes): void {
  const kernels = create();
  describe.each(Object.entries(configs))(`decoder on ${name} kernels, %s`, (_, config) => {
    const model = new PolicyModel(kernels, config);
    randomise(model);
    const random = new RandomStream('decoder test');
    const sequences = [17, 2, 40, 9, 1, 23].map((length, i) => randomSequence(random, length, i % 2 === 0 ? 1 : 0.7));

    // Entropies meet the decoder in its head alone, so two configurations show their gradient.
    const entropies = config === plain || config === extremes['with everything'];
    it.each([['log-probs', 0] as const, ...(entropies ? [['log-probs and entropies', -1.5] as const] : [])])(
      'has the gradient that finite differences of %s give, in every tensor',
      async (_what, share) => {
        const upstream = sequences.map(({ tokens }) => Float32Array.from(tokens, () => random.normal()));
        const loss = async () => {
          model.weightsChanged();
          const { logprobs, entropies } = await model.score(sequences);
          const entropySum = entropies.reduce((sum, row) => row.reduce((a, b) => a + b, sum), 0);
          const weighted = (row: Float32Array, s: number) =>
            row.reduce((a, x, t) => a + x * (upstream[s]?.[t] ?? 0), 0);
          return logprobs.reduce((sum, row, s) => sum + weighted(row, s), 0) + share * entropySum;
        };
        const pick = (indices: readonly number[]) => indices.map((i) => upstream[i] as Float32Array);
        const all = (indices: readonly number[]) =>
          indices.map((i) => Float32Array.from((sequences[i] as Sequence).mask, (written) => share * written));
        await model.accumulate(sequences, pick, share === 0 ? undefined : all);
        const gradient = onHost(model.gradient).slice();
        const tensors = tensorsOnHost(model.tensors);
        const named = {
          embedding: tensors.embedding,
          finalNorm: tensors.finalNorm,
          output: tensors.output,
          ...Object.assign(
            {},
            ...tensors.layers.map((l, i) => Object.fromEntries(Object.entries(l).map(([k, v]) => [`${i}.${k}`, v]))),
          ),
        } as Record<string, Float32Array>;
        for (const [tensor, view] of Object.entries(named)) {
          if (view.length === 0) continue;
          const first = (view.byteOffset - onHost(model.trained).byteOffset) / 4;
          const analytic = gradient.subarray(first, first + view.length);
          await expectGradient(tensor, { weights: view, gradient: analytic, loss, step: 2e-3, random });
        }
        model.weightsChanged();
        await model.optimStep({ optimizer: plainAdamW(0), clipNorm: 0 });
      },
    );

    it('has the same gradient, bit for bit, when layers are computed again instead of kept', async () => {
      const deep = { ...config, layers: 4 };
      const gradientWith = async (options: DecoderOptions) => {
        const copy = new PolicyModel(kernels, deep, options);
        randomise(copy);
        const draws = new RandomStream('recomputed');
        const upstream = sequences.map(({ tokens }) => Float32Array.from(tokens, () => draws.normal()));
        await copy.accumulate(sequences, (indices) => indices.map((i) => upstream[i] as Float32Array));
        return onHost(copy.gradient);
      };
      expectSameBits(await gradientWith({ recompute: true }), await gradientWith({}));
    });

    it('adds up gradients that are submitted in parts and reports the norm of each part', async () => {
      const ones = (indices: readonly number[]) =>
        indices.map((i) => (sequences[i] as Sequence).tokens).map((t) => new Float32Array(t.length).fill(1));
      const parts = [0, 1].map((part) => {
        const half = sequences.filter((_, i) => i % 2 === part);
        const pick = (indices: readonly number[]) =>
          indices.map((i) => new Float32Array((half[i] as Sequence).tokens.length).fill(1));
        return { half, pick };
      });
      const norms: number[] = [];
      for (const { half, pick } of parts) norms.push((await model.accumulate(half, pick)).gradientNorm);
      const both = onHost(model.gradient).slice();
      await model.optimStep({ optimizer: plainAdamW(0), clipNorm: 0 });
      await model.accumulate(sequences, ones);
      const whole = onHost(model.gradient).slice();
      await model.optimStep({ optimizer: plainAdamW(0), clipNorm: 0 });
      const scale = Math.max(...whole.map(Math.abs));
      const differences = whole.map((value, i) => Math.abs((both[i] as number) - value));
      expect(Math.max(...differences)).toBeLessThan(1e-5 * scale);
      for (const [i, { half, pick }] of parts.entries()) {
        expect((await model.accumulate(half, pick)).gradientNorm).toBe(norms[i]);
        await model.optimStep({ optimizer: plainAdamW(0), clipNorm: 0 });
      }
    });

    it('scores a sequence to the same bits alone and packed with others', async () => {
      const together = (await model.score(sequences)).logprobs;
      for (const [i, sequence] of sequences.entries())
        expectSameBits((await model.score([sequence])).logprobs[0], together[i]);
    });

    it('computes a chain of turns in one pass: the bits of their log-probs one by one, the sum of their gradients', async () => {
      const { tokens } = randomSequence(random, config.context);
      const spans = [
        { start: 3, end: 8 },
        { start: 8, end: 9 }, // nothing was read between it and the one before
        { start: 15, end: 27 },
        { start: 33, end: 40 },
      ];
      const turns = spans.map(({ start, end }) => ({
        tokens: tokens.subarray(0, end),
        mask: new Uint8Array(end).fill(1, start),
        temperature: 0.7,
      }));
      const mask = new Uint8Array(tokens.length);
      for (const { start, end } of spans) mask.fill(1, start, end);
      const chain = [{ tokens, mask, temperature: 0.7 }];
      const together = (await model.score(chain)).logprobs[0] as Float32Array;
      (await model.score(turns)).logprobs.forEach((row, i) => {
        const { start, end } = spans[i] as (typeof spans)[number];
        expectSameBits(row.subarray(start), together.subarray(start, end));
      });
      const upstream = Float32Array.from(tokens, () => random.normal());
      const gradientOf = async (some: readonly Sequence[]) => {
        await model.accumulate(some, (indices) => indices.map((i) => upstream.subarray(0, some[i]?.tokens.length)));
        const gradient = onHost(model.gradient).slice();
        model.discardGradient();
        return gradient;
      };
      const [whole, apart] = [await gradientOf(chain), await gradientOf(turns)];
      const norm = (values: Float32Array) => Math.hypot(...values);
      // Sums over rows run in another order, so these are not the same bits (decision 31).
      expect(norm(whole.map((value, i) => value - (apart[i] as number)))).toBeLessThan(2e-6 * norm(apart));
    });

    it('computes shared tokens once in a tree: the same bits of log-probs, the gradient within rounding', async () => {
      const { tokens: root } = randomSequence(random, 14);
      const grown = (from: number, length: number): Sequence => {
        const { mask, ...rest } = randomSequence(random, from + length, random.chance(0.5) ? 1 : 0.7);
        rest.tokens.set(root.subarray(0, from));
        return { ...rest, mask };
      };
      // In any order: siblings, a prefix of another, the same tokens twice, one row, and one that shares nothing.
      const branches = [grown(14, 6), grown(0, 9), grown(14, 1), grown(5, 8), grown(14, 6), grown(5, 1), grown(3, 0)];
      const same = branches[2] as Sequence;
      const all = [...branches, { ...same, mask: new Uint8Array(same.mask.length).fill(1, 1) }];
      const upstream = all.map(({ tokens }) => Float32Array.from(tokens, () => random.normal()));
      const results = async (options: DecoderOptions) => {
        const copy = new PolicyModel(kernels, config, options);
        randomise(copy);
        const { logprobs } = await copy.score(all);
        const trained = await copy.accumulate(
          all,
          (indices) => indices.map((i) => upstream[i] as Float32Array),
          (indices) => indices.map((i) => Float32Array.from((all[i] as Sequence).mask, (written) => written / 3)),
        );
        for (const [s, row] of logprobs.entries()) expectSameBits(trained.logprobs[s], row);
        return { logprobs, gradient: onHost(copy.gradient), entropies: trained.entropies };
      };
      const apart = await results({ tree: false });
      for (const recompute of [false, true]) {
        const tree = await results({ tree: true, recompute });
        for (const [s, row] of apart.logprobs.entries()) expectSameBits(tree.logprobs[s], row);
        const difference = tree.gradient.map((value, i) => value - (apart.gradient[i] as number));
        expect(Math.hypot(...difference)).toBeLessThan(2e-6 * Math.hypot(...apart.gradient));
      }
    });

    it('gives the logits whose log-softmax the log-probs are, to the same bits for any length', async () => {
      const { tokens } = sequences[0] as Sequence;
      const logits = await model.logits(tokens);
      expect(logits.length).toBe(tokens.length * config.vocabSize);
      const mask = Uint8Array.from(tokens, (_, t) => (t === 0 ? 0 : 1));
      const [logprobs] = (await model.score([{ tokens, mask, temperature: 1 }])).logprobs;
      for (let t = 1; t < tokens.length; t++) {
        const row = logits.subarray((t - 1) * config.vocabSize, t * config.vocabSize);
        const logSumExp = Math.log(row.reduce((sum, z) => sum + Math.exp(z), 0));
        expect(logprobs?.[t]).toBeCloseTo((row[tokens[t] as number] as number) - logSumExp, 5);
      }
      expectSameBits(await model.logits(tokens.subarray(0, 5)), logits.subarray(0, 5 * config.vocabSize));
    });

    it('samples the same tokens with the same log-probs in any order of batching, and those the trainer computes', async () => {
      const sampler = new DecoderSampler(kernels, new DecoderWeights(kernels, config));
      sampler.load('policy', model.trained, 1);
      const prompts = [[1, 2, 3, 4], [1, 2, 3, 4], [5], [1, 2, 9, 9, 9, 1], [7, 7], [1, 2, 3, 4, 5, 6, 7, 8]];
      const requests = Array.from(
        { length: 18 },
        (_, id): SamplerRequest => ({
          id,
          policy: 'policy',
          prompt: prompts[id % prompts.length] ?? [0],
          maxTokens: 3 + (id % 11),
          temperature: [1, 0.7, 0][id % 3] ?? 1,
          topK: id % 4 === 0 ? 5 : 0,
          topP: id % 5 === 0 ? 0.8 : 1,
          stopTokens: [0],
          key: randomKey('test', id),
        }),
      );
      const together = await generate(sampler, requests, [18]);
      expect(await generate(sampler, requests, [1, 0, 3])).toEqual(together);
      expect(await generate(sampler, [...requests].reverse(), [5, 1])).toEqual(together);
      sampler.load('policy', model.trained, 1); // forgets the cache
      expect(await generate(sampler, requests, [1])).toEqual(together);
      expect(new Set(together.map(({ finishReason }) => finishReason))).toEqual(new Set(['stop', 'length']));
      for (const [id, result] of together.entries()) {
        const { prompt, temperature } = requests[id] as SamplerRequest;
        const tokens = Int32Array.from([...prompt, ...result.tokens]);
        const mask = Uint8Array.from(tokens, (_, t) => (t < prompt.length ? 0 : 1));
        const [row] = (await model.score([{ tokens, mask, temperature }])).logprobs;
        expect([...(row as Float32Array).slice(prompt.length)]).toEqual(result.logprobs);
      }
    });

    it('draws tokens with the frequencies of the softmax', async () => {
      const sampler = new DecoderSampler(kernels, new DecoderWeights(kernels, config));
      sampler.load('policy', model.trained, 1);
      const draws = 2000;
      const base = {
        policy: 'policy',
        prompt: [3, 1],
        maxTokens: 1,
        temperature: 0.8,
        topK: 0,
        topP: 1,
        stopTokens: [],
      };
      const results = await generate(
        sampler,
        Array.from({ length: draws }, (_, id) => ({ ...base, id, key: randomKey('draw', id) })),
        [draws],
      );
      const counts = new Array<number>(config.vocabSize).fill(0);
      for (const { tokens } of results) counts[tokens[0] as number] = (counts[tokens[0] as number] ?? 0) + 1;
      let chiSquare = 0;
      for (let v = 0; v < config.vocabSize; v++) {
        const drawn = { tokens: Int32Array.of(3, 1, v), mask: Uint8Array.of(0, 0, 1), temperature: 0.8 };
        const [row] = (await model.score([drawn])).logprobs;
        const expected = draws * Math.exp((row as Float32Array)[2] as number);
        chiSquare += ((counts[v] as number) - expected) ** 2 / expected;
      }
      expect(chiSquare).toBeLessThan(32.9); // the 99.9 % point for 12 degrees of freedom
    });

    it('learns: AdamW lowers a cross-entropy', async () => {
      const learner = new PolicyModel(kernels, config);
      learner.initialise(5);
      const nll = async () =>
        -(await learner.score(sequences)).logprobs.reduce((sum, row) => sum + row.reduce((a, x) => a + x, 0), 0);
      const before = await nll();
      for (let i = 0; i < 15; i++) {
        await learner.accumulate(sequences, (indices) =>
          indices.map((j) => new Float32Array((sequences[j] as Sequence).tokens.length).fill(-0.02)),
        );
        await learner.optimStep({ optimizer: plainAdamW(2e-2), clipNorm: 1 });
      }
      expect(await nll()).toBeLessThan(0.5 * before);
    });

    it('drops a step whose gradient is not a number and keeps the weights', async () => {
      const before = onHost(model.trained).slice();
      await model.accumulate(sequences, (indices) =>
        indices.map((i) => new Float32Array((sequences[i] as Sequence).tokens.length).fill(Number.NaN)),
      );
      expect((await model.optimStep({ optimizer: plainAdamW(1), clipNorm: 1 })).applied).toBe(false);
      expectSameBits(onHost(model.trained), before);
      expect(onHost(model.gradient).every((g) => g === 0)).toBe(true);
    });
  });
}
