/** Bases in bfloat16 and in blocks: every result has the bits that the same numbers in float32 give. */

import { type AdapterSettings, type DecoderConfig, PROJECTIONS } from '@drmas/engine/contract';
import { ArgumentError } from '@drmas/engine/errors';
import { baseFootprint } from '@drmas/engine/internal/embedded/memory/footprint';
import { PolicyModel } from '@drmas/engine/internal/model/decoder/policy-model';
import { DecoderSampler, type SamplerRequest } from '@drmas/engine/internal/model/decoder/sampling/decoder-sampler';
import {
  type DecoderTensors,
  flatCopy,
  initialise,
  MATRICES,
  tensorsInOrder,
} from '@drmas/engine/internal/model/decoder/weights/decoder-tensors';
import {
  type BaseWeights,
  BlockWeights,
  baseWeights,
  DecoderWeights,
} from '@drmas/engine/internal/model/decoder/weights/model-weights';
import type { BlockMatrix } from '@drmas/engine/internal/tensor/blocks';
import type { Kernels } from '@drmas/engine/kernels';
import { RandomStream, randomKey } from '@drmas/engine/math';
import type { BlockFormats, Sequence } from '@drmas/engine/model';
import { describe, expect, it } from 'vitest';
import { plainAdamW } from '../support/adamw.js';
import { expectSameBits } from '../support/expectations.js';
import { onHost, tensorsOnHost } from '../support/on-host.js';
import { generate, plain, randomSequence, shake } from './decoder.js';
import { fillBlocks } from './kernels/linear.js';

const rich: DecoderConfig = { ...plain, attentionBias: 'qkvo', queryKeyNorm: true, headDim: 10, untiedOutput: true };
const adapter: AdapterSettings = { rank: 3, alpha: 5, targets: PROJECTIONS };
const optimizer = plainAdamW(1e-2);

/** A format in blocks for each matrix: all formats, in layers and in tables. */
const formats = (config: DecoderConfig): BlockFormats => ({
  embedding: 'Q8_0',
  output: config.untiedOutput ? 'Q4_0' : 'Q8_0',
  layers: Array.from({ length: config.layers }, (_, l) =>
    l % 2 === 0
      ? { qkv: 'Q4_1', attentionOut: 'Q8_0', gateUp: 'Q4_0', down: 'Q4_1' }
      : { qkv: 'Q8_0', attentionOut: 'Q4_0', gateUp: 'Q4_1', down: 'Q8_0' },
  ),
});

type Kept = 'bfloat16' | 'blocks';

/** The same numbers in float32 and, the matrices, in another form; norms and biases have all of their bits in both. */
export function twins(
  kernels: Kernels,
  config: DecoderConfig,
  kept: Kept = 'bfloat16',
): Record<'coarse' | 'fine', BaseWeights> {
  const fine = new DecoderWeights(kernels, config);
  initialise(config, tensorsOnHost(fine.tensors), 3);
  shake(fine.tensors, new RandomStream('twins'));
  return { coarse: (kept === 'blocks' ? twinInBlocks : twinInBfloat16)(kernels, fine), fine };
}

/** Random blocks, whose numbers `fine` gets. */
function twinInBlocks(kernels: Kernels, fine: DecoderWeights): BaseWeights {
  const { config } = fine;
  const coarse = baseWeights(kernels, config, formats(config));
  if (!(coarse instanceof BlockWeights)) throw new Error(`${kernels.name} kernels keep no blocks`);
  const { embedding, output, layers } = coarse.matrices;
  for (const matrix of new Set([embedding, output, ...layers.flatMap((layer) => Object.values(layer))]))
    fillBlocks(matrix as BlockMatrix<Int32Array>, new RandomStream(`blocks ${matrix.format}`));
  const [ours, theirs] = [tensorsOnHost(coarse.tensors as DecoderTensors), tensorsOnHost(fine.tensors)];
  theirs.embedding.set(ours.embedding);
  theirs.output.set(ours.output);
  ours.finalNorm.set(theirs.finalNorm);
  ours.layers.forEach((layer, l) => {
    for (const name of Object.keys(layer) as (keyof typeof layer)[]) {
      const [mine, other] = [layer[name] as Float32Array, theirs.layers[l]?.[name] as Float32Array];
      if (MATRICES.some((matrix) => matrix === name)) other.set(mine);
      else mine.set(other);
    }
  });
  fine.changed();
  return coarse;
}

function twinInBfloat16(kernels: Kernels, fine: DecoderWeights): BaseWeights {
  const coarse = baseWeights(kernels, fine.config, 'bfloat16');
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
  return coarse;
}

/** The bytes that a base is stored in, without packed forms. */
function bytesOf(base: BaseWeights): number {
  const { config } = base;
  if (base instanceof BlockWeights) return baseFootprint({ config, kept: formats(config), precisions: new Set() });
  const all = tensorsInOrder(tensorsOnHost(base.tensors as DecoderTensors));
  return all.reduce((sum, each) => sum + each.byteLength, 0);
}

/** The contract of bases in bfloat16 and in blocks on every kernel set, for decoders with the given configurations. */
export function baseContract(
  name: string,
  create: () => Kernels,
  configs: Readonly<Record<string, DecoderConfig>> = { plain, rich },
): void {
  const kernels = create();
  const kinds = Object.entries(configs).flatMap(([each, config]) =>
    (['bfloat16', 'blocks'] as const).map((kept) => [kept, each, config] as const),
  );
  describe.each(kinds)(`bases in %s on ${name} kernels, %s`, (kept, _, config) => {
    const { coarse, fine } = twins(kernels, config, kept);
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

    it.runIf(kept === 'bfloat16')(
      'gives up the plain form of matrices in float32, with the same results and the same numbers when read',
      async () => {
        const frozen = baseWeights(kernels, config, 'float32');
        const theirs = tensorsInOrder(tensorsOnHost(fine.tensors));
        tensorsInOrder(tensorsOnHost(frozen.tensors as DecoderTensors)).forEach((tensor, i) => {
          tensor.set(theirs[i] as Float32Array);
        });
        const gradientOn = async (base: BaseWeights) => {
          const model = adapted(base);
          const ones = (indices: readonly number[]) =>
            indices.map((i) => new Float32Array((sequences[i] as Sequence).tokens.length).fill(1));
          const { logprobs } = await model.accumulate(sequences, ones);
          return { logprobs, gradient: onHost(model.gradient) };
        };
        const [theirResult, result] = [await gradientOn(fine), await gradientOn(frozen)];
        result.logprobs.forEach((row, s) => {
          expectSameBits(row, theirResult.logprobs[s]);
        });
        expectSameBits(result.gradient, theirResult.gradient);
        expectSameBits(await flatCopy(kernels, frozen.tensors), await flatCopy(kernels, fine.tensors));
        const [first] = frozen.tensors.layers;
        const [down, again] = [first?.down, first?.down];
        expect(down === again).toBe(kernels.name === 'wasm'); // on other processors' kernels each is a copy
      },
    );

    it('hold the same numbers in half the memory', async () => {
      expectSameBits(await flatCopy(kernels, coarse.tensors), await flatCopy(kernels, fine.tensors));
      expect(bytesOf(coarse)).toBeLessThan(0.6 * bytesOf(fine));
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
