import { describe, expect, it } from 'vitest';
import { generate, plain } from '../../../../../../test/contracts/decoder.js';
import { tensorsOnHost } from '../../../../../../test/support/on-host.js';
import { randomKey } from '../../../base/core/random.js';
import { createReferenceKernels } from '../../../tensor/reference/reference.js';
import { initialise } from '../weights/decoder-tensors.js';
import { DecoderWeights } from '../weights/model-weights.js';
import { DecoderSampler, type SamplerRequest } from './decoder-sampler.js';
import { KeyValueCache } from './key-value-cache.js';

/** As a model of half a billion parameters has them. */
const large = { ...plain, layers: 24, kvHeads: 2, headDim: 64, context: 100_000 };

function create(config = large) {
  let allocated = 0;
  const kernels = {
    ...createReferenceKernels(),
    allocate: (length: number) => {
      allocated += 4 * length;
      return new Float32Array(0);
    },
  };
  const cache = new KeyValueCache(kernels, config);
  const cacheFor = (...lengths: number[]) => {
    cache.fit(lengths);
    return cache;
  };
  return { cache, cacheFor, bytes: () => allocated };
}

describe('a sampler', () => {
  it('gives a request the same tokens alone and beside longer ones that wait for larger slots', async () => {
    const kernels = createReferenceKernels();
    const config = { ...plain, layers: 1, context: 700 };
    const request = (id: number, prompt: number, maxTokens: number): SamplerRequest => ({
      id,
      policy: 'policy',
      prompt: Array.from({ length: prompt }, (_, i) => (i * 7 + id) % plain.vocabSize),
      maxTokens,
      temperature: 1,
      topK: 0,
      topP: 1,
      stopTokens: [],
      key: randomKey('cache', id),
    });
    const requests = [request(0, 5, 30), request(1, 300, 5), request(2, 5, 12), request(3, 20, 3), request(4, 600, 4)];
    const play = (these: readonly SamplerRequest[], waves: readonly number[]) => {
      const decoder = new DecoderWeights(kernels, config);
      initialise(config, tensorsOnHost(decoder.tensors), 1);
      const sampler = new DecoderSampler(kernels, decoder);
      sampler.load('policy', undefined, 1);
      return generate(sampler, these, waves);
    };
    const alone = [];
    for (const one of requests) alone.push(...(await play([one], [1])));
    expect(await play(requests, [1])).toEqual(alone);
    expect(await play(requests, [3, 0, 2])).toEqual(alone);
  });
});

describe('KeyValueCache', () => {
  it('allocates for the sequences that come, not for the context', () => {
    const { cacheFor, bytes } = create();
    expect(bytes()).toBe(0);
    expect(cacheFor(10, 300).capacity).toBe(512);
    expect(bytes()).toBeGreaterThan(100 * 2 ** 20);
    expect(bytes()).toBeLessThanOrEqual(512 * 2 ** 20);
  });

  it('grows for a longer sequence, up to the context, with as many slots as the bytes allow and at least one', () => {
    const { cache, cacheFor } = create();
    const short = cacheFor(300).slots.count;
    expect(cacheFor(3000).capacity).toBe(4096);
    expect(cache.slots.count).toBe(Math.floor((short * 512) / 4096));
    expect(cacheFor(99_000).capacity).toBe(100_000);
    expect(cache.slots.count).toBe(1);
  });

  it('keeps what it has where that will do, and makes slots smaller where they are too few', () => {
    const { cacheFor, bytes } = create();
    const { slots } = cacheFor(3000);
    const before = bytes();
    expect(cacheFor(20, 2000).slots).toBe(slots);
    expect(bytes()).toBe(before);
    const many = new Array<number>(100).fill(200);
    expect(cacheFor(...many).capacity).toBe(256);
    expect(cacheFor(...many).slots.count).toBeGreaterThan(slots.count);
  });

  it('gives a small model all of its context at once', () => {
    expect(create({ ...plain, context: 40 }).cacheFor(3).capacity).toBe(40);
  });
});
