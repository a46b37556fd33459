import { type AdapterSettings, type DecoderConfig, PROJECTIONS } from '@drmas/engine/contract';
import type { DecoderOptions } from '@drmas/engine/internal/model/decoder/decoder';
import { PolicyModel } from '@drmas/engine/internal/model/decoder/policy-model';
import { DecoderSampler, type SamplerRequest } from '@drmas/engine/internal/model/decoder/sampling/decoder-sampler';
import { adapterTensors, mergeAdapter } from '@drmas/engine/internal/model/decoder/weights/adapter-tensors';
import { decoderTensors, initialise } from '@drmas/engine/internal/model/decoder/weights/decoder-tensors';
import { DecoderWeights } from '@drmas/engine/internal/model/decoder/weights/model-weights';
import type { Kernels } from '@drmas/engine/kernels';
import { RandomStream, randomKey } from '@drmas/engine/math';
import { parameterCount, type Sequence } from '@drmas/engine/model';
import { describe, expect, it } from 'vitest';
import { plainAdamW } from '../support/adamw.js';
import { countAllocations } from '../support/count-allocations.js';
import { expectGradient, expectSameBits } from '../support/expectations.js';
import { onHost, tensorsOnHost } from '../support/on-host.js';
import { gemma, generate, lfm2, plain, randomSequence, shake } from './decoder.js';

const rich: DecoderConfig = { ...plain, attentionBias: 'qkvo', queryKeyNorm: true, headDim: 10, untiedOutput: true };

type AdapterCases = Readonly<Record<string, { config: DecoderConfig; adapter: AdapterSettings }>>;

const cases: AdapterCases = {
  'of all projections': { config: plain, adapter: { rank: 3, alpha: 5, targets: PROJECTIONS } },
  'of queries and values': { config: plain, adapter: { rank: 1, alpha: 1, targets: ['q', 'v'] } },
  'of keys, up and down on a base with everything': {
    config: rich,
    adapter: { rank: 4, alpha: 2, targets: ['k', 'o', 'up', 'down'] },
  },
};
/** Shapes of other families: the daily tests have them without adapters. */
export const adaptersOfFamilies: AdapterCases = {
  'of all projections of Gemma 3': {
    config: { ...plain, ...gemma, layers: 3 },
    adapter: { rank: 2, alpha: 4, targets: PROJECTIONS },
  },
  'of all projections of LFM2': {
    config: { ...plain, ...lfm2 },
    adapter: { rank: 2, alpha: 1, targets: PROJECTIONS },
  },
};

/**
 * The contract of adapters on every kernel set: right gradients, the bits of the base while they change nothing, and no
 * second base.
 */
export function adapterContract(name: string, create: () => Kernels, tried = cases): void {
  const counted = countAllocations(create());
  const { kernels } = counted;
  describe.each(Object.entries(tried))(`adapters on ${name} kernels, %s`, (_, { config, adapter }) => {
    const base = new DecoderWeights(kernels, config);
    initialise(config, tensorsOnHost(base.tensors), 3);
    const random = new RandomStream('adapter test');
    shake(base.tensors, random);
    const whole = () => {
      const model = new PolicyModel(kernels, config);
      onHost(model.trained).set(onHost(base.tensors.flat));
      model.weightsChanged();
      return model;
    };
    const sequences = [17, 2, 33, 9].map((length, i) => randomSequence(random, length, i % 2 === 0 ? 1 : 0.7));
    // The last sequence begins like the first, so a tree has a row that both share.
    sequences[3]?.tokens.set(sequences[0]?.tokens.subarray(0, 5) ?? []);
    const fresh = (seed = 1, options?: DecoderOptions) => {
      const model = new PolicyModel(kernels, { base, adapter }, options);
      model.initialise(seed);
      return model;
    };
    /** An adapter whose B's are not 0. */
    const trained = (seed = 1, options?: DecoderOptions) => {
      const model = fresh(seed, options);
      const deviation = new RandomStream('trained adapter', seed);
      const weights = onHost(model.trained);
      for (const [i, x] of weights.entries()) weights[i] = x + 0.2 * deviation.normal();
      model.weightsChanged();
      return model;
    };

    it('starts with the bits of the base, from A within its bounds and B of zeros', async () => {
      const model = fresh();
      const { tokens } = sequences[0] as Sequence;
      expectSameBits(await model.logits(tokens), await whole().logits(tokens));
      expectSameBits(onHost(fresh(1).trained), onHost(model.trained));
      expect(fresh(2).trained).not.toEqual(model.trained);
      for (const layer of adapterTensors(config, adapter, onHost(model.trained)).layers) {
        for (const [matrix, { A, B }] of Object.entries(layer)) {
          const inputs = { qkv: 24, attentionOut: config.heads * config.headDim, gateUp: 24, down: 20 }[matrix] ?? 0;
          expect(Math.max(...A.map(Math.abs))).toBeLessThanOrEqual(inputs ** -0.5);
          expect(Math.max(...A.map(Math.abs))).toBeGreaterThan(0.7 * inputs ** -0.5);
          expect(B.every((x) => x === 0)).toBe(true);
        }
      }
    });

    it.each([false, true])(
      'has the gradient that finite differences give, in every tensor (tree: %s)',
      async (tree) => {
        const model = trained(1, { tree });
        const upstream = sequences.map(({ tokens }) => Float32Array.from(tokens, () => random.normal()));
        const loss = async () => {
          model.weightsChanged();
          return (await model.score(sequences)).logprobs.reduce(
            (sum, row, s) => sum + row.reduce((a, x, t) => a + x * (upstream[s]?.[t] ?? 0), 0),
            0,
          );
        };
        await model.accumulate(sequences, (indices) => indices.map((i) => upstream[i] as Float32Array));
        const gradients = adapterTensors(config, adapter, onHost(model.gradient)).layers;
        for (const [l, layer] of adapterTensors(config, adapter, onHost(model.trained)).layers.entries()) {
          for (const [matrix, pair] of Object.entries(layer)) {
            for (const which of ['A', 'B'] as const) {
              const view = pair[which];
              const analytic = gradients[l]?.[matrix as keyof typeof layer]?.[which] as Float32Array;
              const what = { weights: view, gradient: analytic, loss, step: 4e-3, random };
              await expectGradient(`${l}.${matrix}.${which}`, what);
            }
          }
        }
      },
    );

    it('has the same gradient, bit for bit, when layers are computed again instead of kept', async () => {
      const deep = new DecoderWeights(kernels, { ...config, layers: 4 });
      initialise(deep.config, tensorsOnHost(deep.tensors), 5);
      const gradientWith = async (options: DecoderOptions) => {
        const model = new PolicyModel(kernels, { base: deep, adapter }, options);
        const draws = new RandomStream('recomputed');
        const weights = onHost(model.trained);
        for (let i = 0; i < weights.length; i++) weights[i] = draws.normal() / 10;
        model.weightsChanged();
        await model.accumulate(sequences, (indices) =>
          indices.map((i) => new Float32Array((sequences[i] as Sequence).tokens.length).fill(1)),
        );
        return onHost(model.gradient);
      };
      expectSameBits(await gradientWith({ recompute: true }), await gradientWith({}));
    });

    it('samples with the log-probs that it computes, alone or beside another adapter on the base', async () => {
      const models = { one: trained(1), two: trained(2) };
      const requests = Array.from({ length: 14 }, (_, id): SamplerRequest => {
        const prompt = [[1, 2, 3, 4], [5], [1, 2, 3, 4, 9, 1]][(id >> 1) % 3] ?? [0];
        const options = { maxTokens: 3 + id, temperature: id % 3 ? 0.7 : 1, topK: 0, topP: 1, stopTokens: [] };
        return { id, policy: id % 2 ? 'one' : 'two', prompt, ...options, key: randomKey('adapter', id >> 1) };
      });
      const together = new DecoderSampler(kernels, base);
      for (const [policy, model] of Object.entries(models)) together.load(policy, model.trained, 1, adapter);
      const results = await generate(together, requests, [5, 1]);
      expect(await generate(together, [...requests].reverse(), [14])).toEqual(results); // the cache keeps them apart
      for (const [policy, model] of Object.entries(models)) {
        const alone = new DecoderSampler(kernels, base);
        alone.load(policy, model.trained, 1, adapter);
        const ofPolicy = requests.filter((request) => request.policy === policy);
        expect(await generate(alone, ofPolicy, [3])).toEqual(
          results.filter(({ id }) => requests[id]?.policy === policy),
        );
        for (const { id, prompt, temperature } of ofPolicy) {
          const { tokens: written = [], logprobs } = results[id] ?? {};
          const tokens = Int32Array.from([...prompt, ...written]);
          const mask = Uint8Array.from(tokens, (_, t) => (t < prompt.length ? 0 : 1));
          const [row] = (await model.score([{ tokens, mask, temperature }])).logprobs;
          expect([...(row as Float32Array).slice(prompt.length)]).toEqual(logprobs);
        }
      }
      // Pairs of requests differ in their policy alone.
      expect(results[0]?.logprobs[0]).not.toBe(results[1]?.logprobs[0]);
    });

    it('leaves the base and other adapters as they are', async () => {
      const [one, two] = [trained(1), trained(2)];
      const [before, other] = [onHost(base.tensors.flat).slice(), onHost(two.trained).slice()];
      for (let i = 0; i < 3; i++) {
        await one.accumulate(sequences, (indices) =>
          indices.map((j) => new Float32Array((sequences[j] as Sequence).tokens.length).fill(-0.1)),
        );
        expect((await one.optimStep({ optimizer: plainAdamW(1e-2), clipNorm: 1 })).applied).toBe(true);
      }
      expectSameBits(onHost(base.tensors.flat), before);
      expectSameBits(onHost(two.trained), other);
    });

    it('learns: AdamW on the adapter alone lowers a cross-entropy', async () => {
      const model = fresh();
      const nll = async () =>
        -(await model.score(sequences)).logprobs.reduce((sum, row) => sum + row.reduce((a, x) => a + x, 0), 0);
      const before = await nll();
      for (let i = 0; i < 30; i++) {
        await model.accumulate(sequences, (indices) =>
          indices.map((j) => new Float32Array((sequences[j] as Sequence).tokens.length).fill(-0.02)),
        );
        await model.optimStep({ optimizer: plainAdamW(4e-2), clipNorm: 1 });
      }
      expect(await nll()).toBeLessThan(0.8 * before);
    });

    it('gives the same logits when it is folded into the weights', async () => {
      const model = trained();
      const merged = whole();
      mergeAdapter(
        config,
        adapter,
        decoderTensors(config, onHost(merged.trained)),
        adapterTensors(config, adapter, onHost(model.trained)),
      );
      merged.weightsChanged();
      const { tokens } = sequences[2] as Sequence;
      const [a, b] = [await model.logits(tokens), await merged.logits(tokens)];
      expect(Math.max(...a.map((x, i) => Math.abs(x - (b[i] as number))))).toBeLessThan(1e-5);
      const original = await whole().logits(tokens);
      expect(Math.max(...a.map((x, i) => Math.abs(x - (original[i] as number))))).toBeGreaterThan(1e-2);
    });

    it('needs no gradient, no moments and no second copy of the base', async () => {
      const headDim = config.convolution ? 64 : config.headDim; // as wide as the stream together
      const large = { ...config, headDim, width: 256, feedForward: 1024, layers: 3, context: 8 };
      const shared = new DecoderWeights(kernels, large); // zeros will do
      const tokens = Int32Array.of(1, 2, 3, 4, 5);
      const short = { tokens, mask: Uint8Array.of(0, 1, 1, 1, 1), temperature: 1 };
      const use = async () => {
        const model = new PolicyModel(kernels, { base: shared, adapter });
        model.initialise(1);
        for (let i = 0; i < 2; i++) await model.accumulate([short], () => [new Float32Array(tokens.length).fill(1)]);
        await model.optimStep({ optimizer: plainAdamW(1e-3), clipNorm: 1 });
        const sampler = new DecoderSampler(kernels, shared);
        sampler.load('policy', model.trained, 1, adapter);
        const request = {
          id: 0,
          policy: 'policy',
          prompt: [1, 2],
          maxTokens: 3,
          temperature: 1,
          topK: 0,
          topP: 1,
          stopTokens: [],
        };
        await generate(sampler, [{ ...request, key: randomKey('memory') }], [1]);
      };
      await use(); // packs the base
      const cache = 256 * kernels.cacheSlotSize({ capacity: large.context, heads: large });
      const sizes = (await counted.during(use)).filter((size) => size !== cache);
      expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(parameterCount(large));
    });
  });
}
