import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { plain, randomSequence, shake } from '../../../../test/contracts/decoder.js';
import { onHost } from '../../../../test/support/on-host.js';
import { RandomStream, randomKey } from '../base/core/random.js';
import { PolicyModel } from '../model/decoder/policy-model.js';
import { DecoderSampler } from '../model/decoder/sampling/decoder-sampler.js';
import { selectKernels } from '../tensor/select.js';
import { isGreedy, scaleOfDraws, scaleOfScores } from './sampling.js';

/** Numbers of all magnitudes that a double has, subnormal ones among them. */
const magnitudes = fc
  .tuple(fc.double({ min: 1, max: 10, noNaN: true, maxExcluded: true }), fc.integer({ min: -323, max: 307 }))
  .map(([digits, exponent]) => digits * 10 ** exponent);

describe('the scale of logits', () => {
  it('is a usable 32-bit float at each temperature, and 1 / temperature in the usual range', () => {
    fc.assert(
      fc.property(magnitudes, (temperature) => {
        const [drawn, scored] = [scaleOfDraws(temperature), scaleOfScores(temperature)].map(Math.fround);
        expect(drawn).toBe(isGreedy(temperature) ? 0 : scored);
        expect(scored).toBeGreaterThan(1.2e-38); // not subnormal: some processors take these for 0
        expect(scored).toBeLessThan(Infinity);
        if (temperature > 1e-30 && temperature < 1e30) expect(scored).toBe(Math.fround(1 / temperature));
      }),
    );
    expect([0, 1e-39, 5e-324].map(scaleOfDraws)).toEqual([0, 0, 0]);
    expect([0, 1e-39, 5e-324].map(scaleOfScores)).toEqual([1, 1, 1]);
  });
});

const subjects = await Promise.all(
  (['native', 'wasm', 'reference'] as const).map(
    async (prefer) => (await selectKernels({ threads: 1, prefer })).kernels,
  ),
);

describe.each(subjects.map((kernels) => ({ name: kernels.name, kernels })))('on $name kernels', ({ kernels }) => {
  it('a sample is the most probable token at tiny temperatures, any token at huge ones, and scored as it was drawn', async () => {
    const model = new PolicyModel(kernels, plain);
    model.initialise(5);
    shake(model.tensors, new RandomStream('temperatures'));
    model.weightsChanged();
    const sampler = new DecoderSampler(kernels, model.decoder);
    sampler.load('policy', undefined, 0);
    const prompt = [...randomSequence(new RandomStream('prompt'), 5).tokens];
    const drawn = async (temperature: number, index: number) => {
      const wish = { temperature, topK: 0, topP: 1, maxTokens: 4, stopTokens: [] };
      sampler.submit({ ...wish, id: index, policy: 'policy', prompt, key: randomKey('temperature', index) });
      for (;;) {
        const [result] = await sampler.step();
        if (result !== undefined) return result;
      }
    };
    const scored = async (temperature: number, tokens: readonly number[]) => {
      const all = Int32Array.from([...prompt, ...tokens]);
      const mask = new Uint8Array(all.length).fill(1, prompt.length);
      const { logprobs } = await model.score([{ tokens: all, mask, temperature }]);
      return [...onHost(logprobs[0] as Float32Array)].slice(prompt.length);
    };
    const greedy = await drawn(0, 0);
    expect(new Set(greedy.tokens)).not.toEqual(new Set([0]));
    for (let exponent = -323; exponent <= 300; exponent += 7) {
      const temperature = 10 ** exponent;
      const results = [await drawn(temperature, 1), await drawn(temperature, 2), await drawn(temperature, 3)];
      for (const { tokens, logprobs } of results) {
        if (temperature < 1e-6) expect(tokens, `temperature ${temperature}`).toEqual(greedy.tokens);
        const again = await scored(temperature, tokens);
        for (const [t, logprob] of logprobs.entries()) expect(logprob).toBeCloseTo(again[t] as number, 4);
      }
      if (temperature > 1e3) expect(new Set(results.map(({ tokens }) => tokens.join())).size).toBe(3);
    }
  });
});
