import { describe, expect, it } from 'vitest';
import { tensorsOnHost } from '../../../../../../test/support/on-host.js';
import { ArgumentError } from '../../../base/core/errors.js';
import { randomKey } from '../../../base/core/random.js';
import type { DecoderConfig } from '../../../contract/architecture.js';
import type { Kernels } from '../../../tensor/kernels.js';
import { createReferenceKernels } from '../../../tensor/reference/reference.js';
import { initialise } from '../weights/decoder-tensors.js';
import { DecoderWeights } from '../weights/model-weights.js';
import { DecoderSampler, type SamplerRequest, type SamplerResult } from './decoder-sampler.js';

const config: DecoderConfig = {
  vocabSize: 9,
  width: 8,
  layers: 1,
  heads: 2,
  kvHeads: 2,
  headDim: 4,
  feedForward: 6,
  context: 600,
  ropeBase: 10_000,
  normEpsilon: 1e-6,
};

function samplerOf(version = 1, kernels: Kernels = createReferenceKernels()): DecoderSampler {
  const weights = new DecoderWeights(kernels, config);
  initialise(config, tensorsOnHost(weights.tensors), 1);
  const sampler = new DecoderSampler(kernels, weights);
  sampler.load('policy', undefined, version);
  return sampler;
}

const request = (id: number, changes: Partial<SamplerRequest> = {}): SamplerRequest => ({
  id,
  policy: 'policy',
  prompt: [1, 2, 3],
  maxTokens: 4,
  temperature: 1,
  topK: 0,
  topP: 1,
  stopTokens: [],
  key: randomKey('sampler', id),
  ...changes,
});

/** Ticks until nothing is left; the results by tick. */
async function ticks(sampler: DecoderSampler): Promise<SamplerResult[][]> {
  const results: SamplerResult[][] = [];
  while (sampler.busy) results.push(await sampler.step());
  return results;
}
/** The ids that each tick finished, without the ticks that finished none. */
const finishedBy = (results: readonly SamplerResult[][]) =>
  results.map((tick) => tick.map(({ id }) => id)).filter((ids) => ids.length > 0);

describe('a request', () => {
  it('ends after its tokens, at a stop token, or at the end of the context', async () => {
    const sampler = samplerOf(7);
    const long = Array.from({ length: 598 }, (_, i) => i % 9);
    sampler.submit(request(0));
    sampler.submit(request(1, { stopTokens: [0, 1, 2, 3, 4, 5, 6, 7, 8] }));
    sampler.submit(request(2, { prompt: long }));
    const results = (await ticks(sampler)).flat().sort((a, b) => a.id - b.id);
    expect(results.map(({ finishReason, tokens }) => [finishReason, tokens.length])).toEqual([
      ['length', 4],
      ['stop', 1],
      ['length', 2],
    ]);
    for (const { tokens, logprobs, policyVersion } of results) {
      expect(logprobs).toHaveLength(tokens.length);
      for (const logprob of logprobs) expect(logprob).toBeLessThan(0);
      expect(policyVersion).toBe(7);
    }
  });

  it('is refused where it could never be answered', async () => {
    const sampler = samplerOf();
    const refused = (changes: Partial<SamplerRequest>) => expect(() => sampler.submit(request(0, changes)));
    refused({ policy: 'other' }).toThrow('no weights have been published for this policy yet');
    refused({ prompt: [] }).toThrow('a prompt of 0 tokens leaves no room in a context of 600');
    refused({ prompt: new Array<number>(600).fill(1) }).toThrow('a prompt of 600 tokens leaves no room');
    refused({ prompt: [1, 9] }).toThrow('token 9 is outside the vocabulary of 9');
    refused({ prompt: [0.5] }).toThrow(ArgumentError);
    expect(sampler.busy).toBe(false);
    expect(await sampler.step()).toEqual([]);
  });

  it('may be cancelled while it waits and while it runs, and the others are answered as without it', async () => {
    const alone = samplerOf();
    alone.submit(request(1));
    const [expected] = (await ticks(alone)).flat();
    const sampler = samplerOf();
    for (const id of [0, 1, 2]) sampler.submit(request(id));
    sampler.cancel(2);
    expect(await sampler.step()).toEqual([]);
    expect(sampler.plays('policy')).toBe(true);
    sampler.cancel(0);
    sampler.cancel(99);
    expect((await ticks(sampler)).flat()).toEqual([expected]);
    expect(sampler.plays('policy')).toBe(false);
  });
});

describe('admission', () => {
  it('lets as many requests run as there are slots, the others in their order as slots become free', async () => {
    const sampler = samplerOf();
    // 128 slots. Every fourth of the first requests takes one token, so that 32 slots are free after the first tick.
    for (let id = 0; id < 150; id++) sampler.submit(request(id, { maxTokens: id % 4 === 0 && id < 128 ? 1 : 3 }));
    const results = await ticks(sampler);
    const early = Array.from({ length: 32 }, (_, i) => 4 * i);
    const first = Array.from({ length: 128 }, (_, id) => id).filter((id) => id % 4 !== 0);
    const later = Array.from({ length: 22 }, (_, i) => 128 + i);
    expect(finishedBy(results)).toEqual([early, first, later]);
    expect(results).toHaveLength(4); // the later ones run in ticks 2, 3 and 4
  });

  it('lets a request join while others run, and take the slot of one that is cancelled, from the next tick on', async () => {
    const sampler = samplerOf();
    const drawn: number[] = [];
    const streamed = (id: number) => request(id, { maxTokens: 50, onToken: () => void drawn.push(id) });
    for (let id = 0; id < 127; id++) sampler.submit(request(id, { maxTokens: 50 }));
    await sampler.step();
    sampler.submit(streamed(200));
    sampler.submit(streamed(201)); // there are 128 slots
    await sampler.step();
    expect(drawn).toEqual([200]);
    sampler.cancel(3);
    await sampler.step();
    expect(drawn).toEqual([200, 200, 201]);
    await ticks(sampler);
    expect(drawn.filter((id) => id === 201)).toHaveLength(50);
  });

  it('computes equal tokens of a tick once, and answers as alone, also when one of them is cancelled', async () => {
    const kernels = createReferenceKernels();
    const passes: number[] = []; // the rows of each pass
    const alike: number[][] = []; // the tokens that rows of each pass have in common with the row before
    const { embed, attentionCached } = kernels;
    kernels.embed = (given) => {
      if (given.width === config.width && given.rows > 0) passes.push(given.rows);
      embed(given);
    };
    kernels.attentionCached = (given) => {
      alike.push([...given.alike.subarray(0, given.rows)]);
      attentionCached(given);
    };
    const system = Array.from({ length: 20 }, (_, t) => (t * 5) % 9);
    const prompts = [
      [...system, 1, 2, 3],
      [...system, 1, 2, 3],
      [...system, 4, 4],
      [...system, 4, 4, 1],
      [7, 8],
    ];
    const requests = Array.from({ length: 20 }, (_, id) =>
      request(id, { prompt: prompts[id % prompts.length] as number[], maxTokens: 1 + (id % 6), stopTokens: [0] }),
    );
    const alone = samplerOf();
    const expected: SamplerResult[] = [];
    for (const one of requests) {
      alone.submit(one);
      expected.push(...(await ticks(alone)).flat());
    }
    const sampler = samplerOf(1, kernels);
    for (const one of requests) sampler.submit(one);
    const first = await sampler.step();
    // The first prompt and the last one; then the other two after the tokens that they have in common with the first;
    // then one row for each of the four prompts, which are in the order of their tokens.
    expect(passes.slice(0, 3)).toEqual([22 + 1, 1 + 2, 4]);
    expect(alike[2]).toEqual([0, 20, 22, 0]);
    const cancelled = requests.filter(({ id }) => id === 5 || id === 13).map(({ id }) => id);
    for (const id of cancelled) sampler.cancel(id);
    const results = [...first, ...(await ticks(sampler)).flat()].sort((a, b) => a.id - b.id);
    expect(results).toEqual(expected.filter(({ id }) => !cancelled.includes(id)));
  });

  it('makes a request that is longer than the slots wait for larger ones, and nobody overtakes it', async () => {
    const sampler = samplerOf();
    sampler.submit(request(0, { maxTokens: 5 }));
    expect(await sampler.step()).toEqual([]); // slots of 64 positions now
    sampler.submit(request(1, { prompt: new Array<number>(300).fill(2), maxTokens: 2 }));
    sampler.submit(request(2, { maxTokens: 1 }));
    expect(finishedBy(await ticks(sampler))).toEqual([[0], [2], [1]]);
  });

  it('answers the same in larger slots, in a slot that was used before, and beside a prompt that begins alike', async () => {
    const prompt = [4, 4, 5, 1];
    const answer = async (before: readonly SamplerRequest[], changes: Partial<SamplerRequest> = {}) => {
      const sampler = samplerOf();
      for (const other of before) sampler.submit(other);
      if (before.length > 0) await sampler.step();
      sampler.submit(request(50, { prompt, maxTokens: 6, ...changes }));
      const { tokens, logprobs } = (await ticks(sampler)).flat().find(({ id }) => id === 50) ?? {
        tokens: [],
        logprobs: [],
      };
      return { tokens, logprobs };
    };
    const alone = await answer([]);
    expect(alone.tokens).toHaveLength(6);
    expect(await answer([request(0, { prompt: new Array<number>(400).fill(3) })])).toEqual(alone);
    expect(await answer([request(0, { prompt: [4, 4, 5, 7], maxTokens: 1 })])).toEqual(alone);
    expect(await answer([request(0, { prompt: [4, 4, 5, 1, 1], maxTokens: 9 })])).toEqual(alone);
  });
});
