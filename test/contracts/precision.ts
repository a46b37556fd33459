/** Products in bfloat16 and int8: sampler and trainer still agree bit for bit, and the model learns as in float32. */

import { type AdapterSettings, type DecoderConfig, PROJECTIONS, type Precision } from '@drmas/engine/contract';
import { PolicyModel } from '@drmas/engine/internal/model/decoder/policy-model';
import { DecoderSampler } from '@drmas/engine/internal/model/decoder/sampling/decoder-sampler';
import {
  decoderTensors,
  initialise,
  tensorsInOrder,
} from '@drmas/engine/internal/model/decoder/weights/decoder-tensors';
import { type BaseWeights, DecoderWeights } from '@drmas/engine/internal/model/decoder/weights/model-weights';
import { toBfloat16 } from '@drmas/engine/internal/tensor/bfloat16';
import type { Kernels } from '@drmas/engine/kernels';
import { RandomStream, randomKey } from '@drmas/engine/math';
import type { Sequence } from '@drmas/engine/model';
import { describe, expect, it } from 'vitest';
import { plainAdamW } from '../support/adamw.js';
import { expectSameBits } from '../support/expectations.js';
import { onHost, tensorsOnHost } from '../support/on-host.js';
import { twins } from './bases.js';
import { generate, plain, randomSequence, shake } from './decoder.js';

const rich: DecoderConfig = { ...plain, attentionBias: 'qkvo', queryKeyNorm: true, headDim: 10, untiedOutput: true };
const adapter: AdapterSettings = { rank: 3, alpha: 5, targets: PROJECTIONS };
const optimizer = plainAdamW(1e-2);

const dot = (a: Float32Array, b: Float32Array) => a.reduce((sum, x, i) => sum + x * (b[i] as number), 0);

const cosine = (a: Float32Array, b: Float32Array) => dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));

type Shape = 'plain' | 'rich';

/** The contract of products in bfloat16 and int8 on every kernel set. */
export function precisionContract(
  name: string,
  create: () => Kernels,
  shapes: readonly Shape[] = ['plain', 'rich'],
): void {
  const kernels = create();
  const each = shapes
    .map((shape) => [shape, { plain, rich }[shape]] as const)
    .flatMap(([shape, config]) =>
      (['bfloat16', 'int8'] as const).map((coarsely) => [coarsely, shape, config] as const),
    );
  describe.each(each)(`products in %s on ${name} kernels, %s`, (coarsely, _, config) => {
    const inBfloat16 = coarsely === 'bfloat16';
    const random = new RandomStream('precision test');
    const sequences = [17, 2, 33, 9, 1, 23].map((length, i) => randomSequence(random, length, i % 2 === 0 ? 1 : 0.7));
    const draws = new RandomStream('upstream');
    const upstream = sequences.map(({ tokens }) => Float32Array.from(tokens, () => draws.normal()));
    const pick = (indices: readonly number[]) => indices.map((i) => upstream[i] as Float32Array);

    const whole = (precision: Precision, recompute = false) => {
      const model = new PolicyModel(kernels, config, { precision, recompute });
      model.initialise(3);
      shake(model.tensors, new RandomStream('precision weights'));
      model.weightsChanged();
      return model;
    };
    const adapted = (base: BaseWeights, precision: Precision) => {
      const model = new PolicyModel(kernels, { base, adapter }, { precision });
      model.initialise(1);
      const deviation = new RandomStream('adapter in a precision');
      const numbers = onHost(model.trained);
      for (const [i, x] of numbers.entries()) numbers[i] = x + 0.2 * deviation.normal();
      model.weightsChanged();
      return model;
    };
    const base = () => {
      const weights = new DecoderWeights(kernels, config);
      initialise(config, tensorsOnHost(weights.tensors), 3);
      return weights;
    };
    const models: readonly [string, (precision: Precision) => PolicyModel][] = inBfloat16
      ? [
          ['a whole model', whole],
          ['an adapter', (precision) => adapted(base(), precision)],
        ]
      : [['an adapter', (precision) => adapted(twins(kernels, config, 'blocks').coarse, precision)]];

    it.each(models)('are near those in float32, and other ones: %s', async (_what, create) => {
      const [coarse, fine] = [await create(coarsely).score(sequences), await create('float32').score(sequences)];
      let differing = 0;
      coarse.logprobs.forEach((row, s) => {
        row.forEach((value, t) => {
          const other = fine.logprobs[s]?.[t] as number;
          expect(Math.abs(value - other)).toBeLessThan(0.1);
          if (value !== other) differing++;
        });
      });
      expect(differing).toBeGreaterThan(20);
    });

    it.each(models)('lead to nearly the gradient of float32: %s', async (_what, create) => {
      const gradientIn = async (precision: Precision) => {
        const model = create(precision);
        await model.accumulate(sequences, pick);
        return onHost(model.gradient);
      };
      const [coarse, fine] = [await gradientIn(coarsely), await gradientIn('float32')];
      expect(cosine(coarse, fine)).toBeGreaterThan(0.999);
      expect(Math.sqrt(dot(coarse, coarse) / dot(fine, fine))).toBeCloseTo(1, 1);
      expect(cosine(coarse, fine)).toBeLessThan(1 - 1e-7);
    });

    it.runIf(inBfloat16)('lead to nearly the gradient of float32 in every tensor', async () => {
      const gradientsIn = async (precision: Precision) => {
        const model = whole(precision);
        await model.accumulate(sequences, pick);
        return tensorsInOrder(decoderTensors(config, onHost(model.gradient)));
      };
      const [coarse, fine] = [await gradientsIn('bfloat16'), await gradientsIn('float32')];
      coarse.forEach((tensor, i) => {
        const other = fine[i] as Float32Array;
        if (tensor.length > 0) expect(cosine(tensor, other)).toBeGreaterThan(0.99);
      });
    });

    it.each(models)(
      'give a sequence the same bits alone, and sampler and trainer the same log-probs: %s',
      async (_w, create) => {
        const model = create(coarsely);
        const together = (await model.score(sequences)).logprobs;
        for (const [s, sequence] of sequences.entries()) {
          const [alone] = (await model.score([sequence])).logprobs;
          expectSameBits(alone as Float32Array, together[s] as Float32Array);
        }
        const sampler = new DecoderSampler(kernels, model.decoder, coarsely);
        const { adapter: trained } = model.weights;
        sampler.load('policy', trained && model.trained, 1, trained?.settings);
        const prompts = [[1, 2, 3, 4], [5], [1, 2, 9, 9, 9, 1]];
        const requests = Array.from({ length: 9 }, (_each, id) => ({
          id,
          policy: 'policy',
          prompt: prompts[id % prompts.length] ?? [0],
          maxTokens: 3 + id,
          temperature: [1, 0.7, 0][id % 3] ?? 1,
          topK: 0,
          topP: 1,
          stopTokens: [],
          key: randomKey('precision', id),
        }));
        const results = await generate(sampler, requests, [4, 0, 3]);
        expect(await generate(sampler, requests, [1])).toEqual(results);
        for (const [id, result] of results.entries()) {
          const { prompt, temperature } = requests[id] as (typeof requests)[number];
          const tokens = Int32Array.from([...prompt, ...result.tokens]);
          const mask = Uint8Array.from(tokens, (_token, t) => (t < prompt.length ? 0 : 1));
          const [row] = (await model.score([{ tokens, mask, temperature }])).logprobs;
          expect([...(row as Float32Array).slice(prompt.length)]).toEqual(result.logprobs);
        }
      },
    );

    it.runIf(inBfloat16)(
      'are the same on a base that is kept in bfloat16 or in blocks, and when layers are computed again',
      async () => {
        for (const keptIn of ['bfloat16', 'blocks'] as const) {
          const { coarse, fine } = twins(kernels, config, keptIn);
          const [a, b] = [adapted(coarse, 'bfloat16'), adapted(fine, 'bfloat16')];
          expect(await a.accumulate(sequences, pick)).toEqual(await b.accumulate(sequences, pick));
          expectSameBits(onHost(a.gradient), onHost(b.gradient));
        }
        const [kept, again] = [whole('bfloat16'), whole('bfloat16', true)];
        expect(await kept.accumulate(sequences, pick)).toEqual(await again.accumulate(sequences, pick));
        expectSameBits(onHost(kept.gradient), onHost(again.gradient));
      },
    );

    it('do not change a base, which adapters in all precisions may share', async () => {
      const fresh = () => (inBfloat16 ? base() : twins(kernels, config, 'blocks').coarse);
      const shared = fresh();
      const alone = (precision: Precision) => adapted(fresh(), precision).score(sequences);
      const precisions: readonly Precision[] = inBfloat16 ? ['bfloat16', 'float32'] : ['int8', 'bfloat16', 'float32'];
      const models = precisions.map((precision) => adapted(shared, precision));
      for (let i = 0; i < 2; i++)
        for (const [j, model] of models.entries())
          expect(await model.score(sequences)).toEqual(await alone(precisions[j] as Precision));
    });

    it.each(models)(
      'learn as float32 does, with weights that move by less than bfloat16 could hold: %s',
      async (_w, create) => {
        const learnt = async (precision: Precision) => {
          const model = create(precision);
          const loss = async () =>
            -(await model.score(sequences)).logprobs.flatMap((row) => [...row]).reduce((sum, x) => sum + x, 0);
          const before = await loss();
          const first = onHost(model.trained).slice();
          const coarsely = toBfloat16(first);
          for (let step = 0; step < 25; step++) {
            await model.accumulate(sequences, (indices) =>
              indices.map((i) => Float32Array.from((sequences[i] as Sequence).mask, (written) => -written)),
            );
            await model.optimStep({
              optimizer: step === 0 ? { ...optimizer, learningRate: 1e-5 } : optimizer,
              clipNorm: 1,
            });
            if (step === 0) {
              const now = toBfloat16(onHost(model.trained));
              const same = coarsely.filter((bits, i) => bits === now[i]);
              expect(same.length).toBeGreaterThan(0.9 * first.length); // in bfloat16 hardly any would have moved
              expect(onHost(model.trained).filter((x, i) => x !== first[i]).length).toBeGreaterThan(0.5 * first.length);
            }
          }
          return { before, end: await loss() };
        };
        const [coarse, fine] = [await learnt(coarsely), await learnt('float32')];
        expect(coarse.end).toBeLessThan(0.8 * coarse.before);
        expect((coarse.before - coarse.end) / (fine.before - fine.end)).toBeCloseTo(1, 1);
      },
    );
  });
}
