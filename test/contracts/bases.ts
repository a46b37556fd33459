/** Bases in bfloat16: every result has the bits that the same numbers in float32 give. */
import { describe, expect, it } from 'vitest';
import { ArgumentError } from '../../src/base/core/errors.js';
import { RandomStream, randomKey } from '../../src/base/core/random.js';
import { type AdapterSettings, type DecoderConfig, PROJECTIONS } from '../../src/engine/contract/architecture.js';
import type { Sequence } from '../../src/engine/model/decoder/packed-batch.js';
import { PolicyModel } from '../../src/engine/model/decoder/policy-model.js';
import { DecoderSampler, type SamplerRequest } from '../../src/engine/model/decoder/sampling/decoder-sampler.js';
import {
  type DecoderTensors,
  flatCopy,
  initialise,
  tensorsInOrder,
} from '../../src/engine/model/decoder/weights/decoder-tensors.js';
import { type BaseWeights, baseWeights, DecoderWeights } from '../../src/engine/model/decoder/weights/model-weights.js';
import type { Kernels } from '../../src/engine/tensor/kernels.js';
import { plainAdamW } from '../support/adamw.js';
import { onHost, tensorsOnHost } from '../support/on-host.js';
import { expectSameBits } from '../support/same-bits.js';
import { generate, plain, randomSequence, shake } from './decoder.js';

const rich: DecoderConfig = { ...plain, attentionBias: 'qkvo', queryKeyNorm: true, headDim: 10, untiedOutput: true };
const adapter: AdapterSettings = { rank: 3, alpha: 5, targets: PROJECTIONS };
const optimizer = plainAdamW(1e-2);

/** The same numbers in float32 and, the matrices, in bfloat16; norms and biases have all of their bits in both. */
export function twins(kernels: Kernels, config: DecoderConfig): Record<'coarse' | 'fine', BaseWeights> {
  const [coarse, fine] = [baseWeights(kernels, config, 'bfloat16'), new DecoderWeights(kernels, config)];
  initialise(config, tensorsOnHost(fine.tensors), 3);
  shake(fine.tensors, new RandomStream('twins'));
  const theirs = tensorsInOrder(tensorsOnHost(fine.tensors));
  tensorsInOrder(tensorsOnHost(coarse.tensors as DecoderTensors)).forEach((tensor, i) => {
    const numbers = theirs[i] as Float32Array;
    if (tensor instanceof Float32Array) {
      tensor.set(numbers);
      return;
    }
    const bits = new Uint32Array(numbers.buffer, numbers.byteOffset, numbers.length);
    for (let at = 0; at < numbers.length; at++) {
      tensor[at] = (bits[at] as number) >>> 16;
      bits[at] = (tensor[at] as number) << 16;
    }
  });
  return { coarse, fine };
}

/** The contract of bases in bfloat16 on every kernel set. */
export function baseContract(name: string, create: () => Kernels): void {
  const kernels = create();
  describe.each(Object.entries({ plain, rich }))(`bases in bfloat16 on ${name} kernels, %s`, (_, config) => {
    const { coarse, fine } = twins(kernels, config);
    const random = new RandomStream('base test');
    const sequences = [17, 2, 33, 9].map((length, i) => randomSequence(random, length, i % 2 === 0 ? 1 : 0.7));
    const adapted = (base: BaseWeights) => {
      const model = new PolicyModel(kernels, { base, adapter });
      model.initialise(1);
      const deviation = new RandomStream('adapter on a base');
      const numbers = onHost(model.trained);
      for (const [i, x] of numbers.entries()) numbers[i] = x + 0.2 * deviation.normal();
      model.weightsChanged();
      return model;
    };

    it('hold the same numbers in half the memory', async () => {
      expectSameBits(await flatCopy(kernels, coarse.tensors), await flatCopy(kernels, fine.tensors));
      const bytes = ({ tensors }: BaseWeights) =>
        tensorsInOrder(tensorsOnHost(tensors as DecoderTensors)).reduce((sum, each) => sum + each.byteLength, 0);
      expect(bytes(coarse)).toBeLessThan(0.6 * bytes(fine));
    });

    it('score and give logits, as they are or with an adapter', async () => {
      const { tokens } = sequences[2] as Sequence;
      for (const model of [(base: BaseWeights) => new PolicyModel(kernels, { base }), adapted]) {
        const [a, b] = [model(coarse), model(fine)];
        expectSameBits(await a.logits(tokens), await b.logits(tokens));
        expect(await a.score(sequences)).toEqual(await b.score(sequences));
      }
    });

    it('lead gradients to an adapter, which learns the same', async () => {
      const [a, b] = [adapted(coarse), adapted(fine)];
      for (let step = 0; step < 3; step++) {
        const [ours, theirs] = [a, b].map(async (model) => {
          const draws = new RandomStream('upstream', step);
          return model.accumulate(sequences, (indices) =>
            indices.map((i) => Float32Array.from((sequences[i] as Sequence).tokens, () => draws.normal())),
          );
        });
        expect(await ours).toEqual(await theirs);
        expectSameBits(onHost(a.gradient), onHost(b.gradient));
        expect(onHost(a.gradient).some((x) => x !== 0)).toBe(true);
        for (const model of [a, b]) await model.optimStep({ optimizer, clipNorm: 1 });
        expectSameBits(onHost(a.trained), onHost(b.trained));
      }
    });

    it('are played, beside an adapter on them or alone', async () => {
      const weights = adapted(fine).trained;
      const requests = Array.from({ length: 12 }, (_, id): SamplerRequest => {
        const prompt = [[1, 2, 3, 4], [5], [1, 2, 3, 4, 9, 1]][(id >> 1) % 3] ?? [0];
        const options = { maxTokens: 3 + id, temperature: id % 3 ? 0.7 : 1, topK: 0, topP: 1, stopTokens: [] };
        return { id, policy: id % 2 ? 'adapted' : 'plain', prompt, ...options, key: randomKey('base', id >> 1) };
      });
      const play = (base: BaseWeights, order: readonly string[]) => {
        const sampler = new DecoderSampler(kernels, base);
        for (const policy of order)
          if (policy === 'plain') sampler.load(policy, undefined, 1);
          else sampler.load(policy, weights, 1, adapter);
        const ofOrder = requests.filter(({ policy }) => order.includes(policy));
        return generate(sampler, ofOrder, [5, 1]);
      };
      const together = await play(coarse, ['plain', 'adapted']);
      expect(together).toHaveLength(requests.length);
      expect(await play(coarse, ['adapted', 'plain'])).toEqual(together);
      expect(await play(fine, ['plain', 'adapted'])).toEqual(together);
      for (const policy of ['plain', 'adapted'])
        expect(await play(fine, [policy])).toEqual(together.filter(({ id }) => requests[id]?.policy === policy));
      // Pairs of requests differ in their policy alone.
      expect(together[0]?.logprobs[0]).not.toBe(together[1]?.logprobs[0]);
    });

    it('are not trained', async () => {
      for (const base of [coarse, fine]) {
        const model = new PolicyModel(kernels, { base });
        const before = await flatCopy(kernels, base.tensors);
        const training = model.accumulate(sequences, (indices) => indices.map(() => new Float32Array(40)));
        await expect(training).rejects.toThrow(ArgumentError);
        expect(() => model.initialise(1)).toThrow(ArgumentError);
        expectSameBits(await flatCopy(kernels, base.tensors), before);
        expect(model.parameters).toBe(before.length);
      }
      const copy = await flatCopy(kernels, coarse.tensors);
      expect(() => new DecoderSampler(kernels, coarse).load('plain', copy, 1)).toThrow(ArgumentError);
    });
  });
}
