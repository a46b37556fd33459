import { describe, expect, it } from 'vitest';
import { type AdapterSettings, type DecoderConfig, PROJECTIONS } from '../../src/contract/architecture.js';
import { RandomStream, randomKey } from '../../src/core/random.js';
import type { Sequence } from '../../src/model/decoder/packed-batch.js';
import { PolicyModel } from '../../src/model/decoder/policy-model.js';
import { Sampler, type SamplerRequest } from '../../src/model/decoder/sampling/decoder-sampler.js';
import { adapterTensors, mergeAdapter } from '../../src/model/decoder/weights/adapter-tensors.js';
import { decoderTensors, initialise, parameterCount } from '../../src/model/decoder/weights/decoder-tensors.js';
import { DecoderWeights } from '../../src/model/decoder/weights/model-weights.js';
import type { Kernels } from '../../src/tensor/kernels.js';
import { plainAdamW } from '../support/adamw.js';
import { countAllocations } from '../support/count-allocations.js';
import { expectSameBits } from '../support/same-bits.js';
import { generate, plain, randomSequence, shake } from './decoder.js';

const rich: DecoderConfig = { ...plain, attentionBias: 'qkvo', queryKeyNorm: true, headDim: 10, untiedOutput: true };

const cases: Readonly<Record<string, { config: DecoderConfig; adapter: AdapterSettings }>> = {
  'of all projections': { config: plain, adapter: { rank: 3, alpha: 5, targets: PROJECTIONS } },
  'of queries and values': { config: plain, adapter: { rank: 1, alpha: 1, targets: ['q', 'v'] } },
  'of keys, up and down on a base with everything': {
    config: rich,
    adapter: { rank: 4, alpha: 2, targets: ['k', 'o', 'up', 'down'] },
  },
};

/**
 * What every kernel set must give adapters: right gradients, the base's bits where they change nothing, no second base.
 */
export function adapterContract(name: string, create: () => Kernels): void {
  const counted = countAllocations(create());
  const { kernels } = counted;
  describe.each(Object.entries(cases))(`adapters on ${name} kernels, %s`, (_, { config, adapter }) => {
    const base = new DecoderWeights(kernels, config);
    initialise(config, base.tensors, 3);
    const random = new RandomStream('adapter test');
    shake(base.tensors, random);
    const whole = () => {
      const model = new PolicyModel(kernels, config);
      model.trained.set(base.tensors.flat);
      model.weightsChanged();
      return model;
    };
    const sequences = [17, 2, 33, 9].map((length, i) => randomSequence(random, length, i % 2 === 0 ? 1 : 0.7));
    const fresh = (seed = 1) => {
      const model = new PolicyModel(kernels, { base, adapter });
      model.initialise(seed);
      return model;
    };
    /** An adapter whose B's are not 0. */
    const trained = (seed = 1) => {
      const model = fresh(seed);
      const deviation = new RandomStream('trained adapter', seed);
      for (const [i, x] of model.trained.entries()) model.trained[i] = x + 0.2 * deviation.normal();
      model.weightsChanged();
      return model;
    };

    it('starts with the bits of the base, from A within its bounds and B of zeros', () => {
      const model = fresh();
      const { tokens } = sequences[0] as Sequence;
      expectSameBits(model.logits(tokens), whole().logits(tokens));
      expectSameBits(fresh(1).trained, model.trained);
      expect(fresh(2).trained).not.toEqual(model.trained);
      for (const layer of adapterTensors(config, adapter, model.trained).layers) {
        for (const [matrix, { A, B }] of Object.entries(layer)) {
          const inputs = { qkv: 24, attentionOut: config.heads * config.headDim, gateUp: 24, down: 20 }[matrix] ?? 0;
          expect(Math.max(...A.map(Math.abs))).toBeLessThanOrEqual(inputs ** -0.5);
          expect(Math.max(...A.map(Math.abs))).toBeGreaterThan(0.7 * inputs ** -0.5);
          expect(B.every((x) => x === 0)).toBe(true);
        }
      }
    });

    it('has the gradient that finite differences give, in every tensor', () => {
      const model = trained();
      const upstream = sequences.map(({ tokens }) => Float32Array.from(tokens, () => random.normal()));
      const loss = () =>
        model
          .score(sequences)
          .logprobs.reduce((sum, row, s) => sum + row.reduce((a, x, t) => a + x * (upstream[s]?.[t] ?? 0), 0), 0);
      model.accumulate(sequences, (indices) => indices.map((i) => upstream[i] as Float32Array));
      const gradients = adapterTensors(config, adapter, model.gradient).layers;
      adapterTensors(config, adapter, model.trained).layers.forEach((layer, l) => {
        for (const [matrix, pair] of Object.entries(layer)) {
          for (const which of ['A', 'B'] as const) {
            const view = pair[which];
            const analytic = gradients[l]?.[matrix as keyof typeof layer]?.[which] as Float32Array;
            const direction = Float64Array.from(view, () => random.normal());
            const before = Float32Array.from(view);
            const at = (step: number) => {
              for (let i = 0; i < view.length; i++) view[i] = (before[i] as number) + step * (direction[i] as number);
              model.weightsChanged();
              return loss();
            };
            const step = 4e-3;
            const coarse = (at(2 * step) - at(-2 * step)) / (4 * step);
            const fine = (at(step) - at(-step)) / (2 * step);
            view.set(before);
            model.weightsChanged();
            const along = direction.reduce((sum, d, i) => sum + d * (analytic[i] as number), 0);
            const scale = Math.hypot(...direction) * Math.hypot(...analytic);
            expect(Math.abs((4 * fine - coarse) / 3 - along) / scale, `${l}.${matrix}.${which}`).toBeLessThan(2e-3);
          }
        }
      });
    });

    it('has the same gradient, bit for bit, when layers are computed again instead of kept', () => {
      const deep = new DecoderWeights(kernels, { ...config, layers: 4 });
      initialise(deep.config, deep.tensors, 5);
      const [kept, again] = [{}, { recompute: true }].map((options) => {
        const model = new PolicyModel(kernels, { base: deep, adapter }, options);
        const draws = new RandomStream('recomputed');
        for (let i = 0; i < model.trained.length; i++) model.trained[i] = draws.normal() / 10;
        model.weightsChanged();
        model.accumulate(sequences, (indices) =>
          indices.map((i) => new Float32Array((sequences[i] as Sequence).tokens.length).fill(1)),
        );
        return model.gradient;
      });
      expectSameBits(again, kept);
    });

    it('samples with the log-probs that it computes, alone or beside another adapter on the base', () => {
      const models = { one: trained(1), two: trained(2) };
      const requests = Array.from({ length: 14 }, (_, id): SamplerRequest => {
        const prompt = [[1, 2, 3, 4], [5], [1, 2, 3, 4, 9, 1]][(id >> 1) % 3] ?? [0];
        const options = { maxTokens: 3 + id, temperature: id % 3 ? 0.7 : 1, topK: 0, topP: 1, stopTokens: [] };
        return { id, policy: id % 2 ? 'one' : 'two', prompt, ...options, key: randomKey('adapter', id >> 1) };
      });
      const together = new Sampler(kernels, base);
      for (const [policy, model] of Object.entries(models)) together.load(policy, model.trained, 1, adapter);
      const results = generate(together, requests, [5, 1]);
      expect(generate(together, [...requests].reverse(), [14])).toEqual(results); // the cache keeps them apart
      for (const [policy, model] of Object.entries(models)) {
        const alone = new Sampler(kernels, base);
        alone.load(policy, model.trained, 1, adapter);
        const ofPolicy = requests.filter((request) => request.policy === policy);
        expect(generate(alone, ofPolicy, [3])).toEqual(results.filter(({ id }) => requests[id]?.policy === policy));
        for (const { id, prompt, temperature } of ofPolicy) {
          const { tokens: written = [], logprobs } = results[id] ?? {};
          const tokens = Int32Array.from([...prompt, ...written]);
          const mask = Uint8Array.from(tokens, (_, t) => (t < prompt.length ? 0 : 1));
          const [row] = model.score([{ tokens, mask, temperature }]).logprobs;
          expect([...(row as Float32Array).slice(prompt.length)]).toEqual(logprobs);
        }
      }
      // Pairs of requests differ in their policy alone.
      expect(results[0]?.logprobs[0]).not.toBe(results[1]?.logprobs[0]);
    });

    it('leaves the base and other adapters as they are', () => {
      const [one, two] = [trained(1), trained(2)];
      const [before, other] = [Float32Array.from(base.tensors.flat), Float32Array.from(two.trained)];
      for (let i = 0; i < 3; i++) {
        one.accumulate(sequences, (indices) =>
          indices.map((j) => new Float32Array((sequences[j] as Sequence).tokens.length).fill(-0.1)),
        );
        expect(one.optimStep({ optimizer: plainAdamW(1e-2), clipNorm: 1 }).applied).toBe(true);
      }
      expectSameBits(base.tensors.flat, before);
      expectSameBits(two.trained, other);
    });

    it('learns: AdamW on the adapter alone lowers a cross-entropy', () => {
      const model = fresh();
      const nll = () => -model.score(sequences).logprobs.reduce((sum, row) => sum + row.reduce((a, x) => a + x, 0), 0);
      const before = nll();
      for (let i = 0; i < 30; i++) {
        model.accumulate(sequences, (indices) =>
          indices.map((j) => new Float32Array((sequences[j] as Sequence).tokens.length).fill(-0.02)),
        );
        model.optimStep({ optimizer: plainAdamW(4e-2), clipNorm: 1 });
      }
      expect(nll()).toBeLessThan(0.8 * before);
    });

    it('gives the same logits when it is folded into the weights', () => {
      const model = trained();
      const merged = whole();
      mergeAdapter(
        config,
        adapter,
        decoderTensors(config, merged.trained),
        adapterTensors(config, adapter, model.trained),
      );
      merged.weightsChanged();
      const { tokens } = sequences[2] as Sequence;
      const [a, b] = [model.logits(tokens), merged.logits(tokens)];
      expect(Math.max(...a.map((x, i) => Math.abs(x - (b[i] as number))))).toBeLessThan(1e-5);
      const original = whole().logits(tokens);
      expect(Math.max(...a.map((x, i) => Math.abs(x - (original[i] as number))))).toBeGreaterThan(1e-2);
    });

    it('needs no gradient, no moments and no second copy of the base', () => {
      const large = { ...config, width: 256, feedForward: 1024, layers: 3, context: 8 };
      const shared = new DecoderWeights(kernels, large); // zeros will do
      const tokens = Int32Array.of(1, 2, 3, 4, 5);
      const short = { tokens, mask: Uint8Array.of(0, 1, 1, 1, 1), temperature: 1 };
      const use = () => {
        const model = new PolicyModel(kernels, { base: shared, adapter });
        model.initialise(1);
        for (let i = 0; i < 2; i++) model.accumulate([short], () => [new Float32Array(tokens.length).fill(1)]);
        model.optimStep({ optimizer: plainAdamW(1e-3), clipNorm: 1 });
        const sampler = new Sampler(kernels, shared);
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
        generate(sampler, [{ ...request, key: randomKey('memory') }], [1]);
      };
      use(); // packs the base
      const cache = 256 * kernels.cacheSlotSize(large.context, large);
      const sizes = counted.during(use).filter((size) => size !== cache);
      expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(parameterCount(large));
    });
  });
}
