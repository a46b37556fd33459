// @module-tag verify

import { BackendError } from '@drmas/engine/errors';
import { randomKey } from '@drmas/engine/math';
import type { TrainingSample } from '@drmas/engine/nouns';
import { nodeHost } from '@drmas/engine/platform';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { plainAdamW } from '../../../../test/support/adamw.js';
import { stopwatch } from '../../../../test/support/time-and-chance.js';
import { writeBaseModel } from '../../../../test/support/tinker-fake/base-model.js';
import { adapterOn, openOnFake } from '../../../../test/support/tinker-fake/open.js';
import type { FakeName, Fault } from '../../../../test/support/tinker-fake/options.js';
import { TinkerFake } from '../../../../test/support/tinker-fake/server.js';
import { temporaryRoot } from '../../../../test/support/tiny-run.js';
import { TinkerBackend } from './tinker-backend.js';

const root = temporaryRoot();
let directory = '';
const open: { close(): Promise<void> }[] = [];
beforeAll(async () => {
  directory = await writeBaseModel(root);
});
afterAll(() => Promise.all(open.map((each) => each.close())));

const tokens = [3, 4, 5, 6, 7, 8];
const sample: TrainingSample = {
  tokens: Int32Array.from(tokens),
  mask: Uint8Array.from(tokens, (_, t) => (t < 2 ? 0 : 1)),
  behaviourLogprobs: new Float32Array(6).fill(-5.5),
  advantages: new Float32Array(6).fill(1),
  temperature: 1,
  policyVersion: 0,
  agent: 'agent',
};
const adamw = plainAdamW(1e-2);

/** A policy after one update, published and so saved. */
async function served(behaves: FakeName = 'skyrl-jax') {
  const profile = behaves === 'skyrl-train' ? 'skyrl-train' : 'skyrl-jax';
  const all = await openOnFake({ directory, behaves, pollMs: 50 }, { profile });
  const { backend, fake } = all;
  open.push({ close: () => backend.dispose().then(() => fake.close()) });
  const policy = await backend.open(adapterOn(directory), 'policy', 'one');
  const weights = async () => [...((await policy.logprobs([sample]))[0] as Float32Array)];
  const update = async () => {
    const loss = { type: 'gspo', clipLow: 9, clipHigh: 9 } as const;
    const computed = policy.forwardBackward([sample], { loss, normalizer: 1 });
    const [, step] = await Promise.all([computed, policy.optimStep({ optimizer: adamw, clipNorm: 0 })]);
    return step;
  };
  const publish = () => policy.publish();
  const generate = () =>
    policy.generate({
      prompt: [3, 4],
      temperature: 1,
      topP: 1,
      topK: 0,
      maxTokens: 3,
      stopTokens: [],
      key: randomKey('fault'),
    });
  await update();
  await publish();
  return { ...all, weights, update, publish, generate };
}

const busy: Fault[] = [
  { type: 'status', status: 408, body: { detail: 'Timeout' } },
  { type: 'status', status: 429, body: { detail: 'Too many requests' } },
  { type: 'status', status: 503, body: 'Service Unavailable' },
];

describe('what passes by is waited out, and nothing is done twice', () => {
  it('a server that is busy, polls without a result, connections that drop', async () => {
    const [calm, rough] = [await served(), await served()];
    for (const path of ['forward', 'forward_backward', 'optim_step', 'retrieve_future'])
      rough.fake.inject(path, ...busy);
    rough.fake.inject('retrieve_future', { type: 'drop-before' }, { type: 'drop-after' });
    rough.fake.inject('retrieve_future', {
      type: 'status',
      status: 200,
      body: { type: 'try_again', queue_state: 'active' },
    });
    rough.fake.inject('forward', { type: 'drop-before' });
    expect(await rough.update()).toEqual(await calm.update());
    rough.fake.inject('save_weights_for_sampler', { type: 'drop-after' });
    rough.fake.inject('asample', { type: 'drop-after' });
    await Promise.all([calm.publish(), rough.publish()]);
    expect(await rough.generate()).toEqual(await calm.generate());
    expect(await rough.weights()).toEqual(await calm.weights());
    expect(rough.warnings).toEqual([]);
  });

  it('an update whose answer was lost, where the server knows requests by their numbers', async () => {
    const [calm, rough] = [await served('skyrl-train'), await served('skyrl-train')];
    rough.fake.inject('forward_backward', { type: 'drop-after' });
    rough.fake.inject('optim_step', { type: 'drop-after' });
    for (const path of ['forward_backward', 'optim_step']) rough.fake.inject(path, ...Object.values(ofProxies));
    expect(await rough.update()).toEqual(await calm.update());
    expect(await rough.weights()).toEqual(await calm.weights());
    expect(rough.warnings).toEqual([]);
  });
});

/** A proxy gives up on a request that the server has taken in. */
const byProxy = (status: number): Fault => ({
  type: 'answer',
  answer: (response) => void response.writeHead(status, { 'content-type': 'text/html' }).end('<html></html>'),
});
const ofProxies = { 'bad gateway': byProxy(502), 'gateway timeout': byProxy(504) };

describe('a step that failed is no update', () => {
  const failures: [string, string, Fault, RegExp][] = [
    ['an update of unknown fate', 'optim_step', { type: 'drop-after' }, /may have arrived/],
    ...Object.entries(ofProxies).flatMap(([name, fault]): [string, string, Fault, RegExp][] => [
      [`a gradient of unknown fate: ${name}`, 'forward_backward', fault, /may have arrived/],
      [`an update of unknown fate: ${name}`, 'optim_step', fault, /may have arrived/],
    ]),
    ['a norm that is not a number', 'optim_step', { type: 'null' }, /norm .* is not a finite number/],
    [
      'log-probs that are not numbers',
      'forward_backward',
      { type: 'null' },
      /log-prob of target 0 is null, expected a finite/,
    ],
    [
      'a gradient that broke the server',
      'forward_backward',
      { type: 'result', status: 500, body: 'Internal Server Error' },
      /500/,
    ],
    [
      'a failure told in an answer of status 200',
      'forward_backward',
      {
        type: 'result',
        status: 200,
        body: { error: 'Traceback\nRuntimeError: CUDA out of memory', category: 'server' },
      },
      /out of memory/,
    ],
    ['a gradient that never comes', 'forward_backward', { type: 'hang' }, /no result within 2 s/],
  ];
  it.each(failures)('%s', async (_, path, fault, reason) => {
    const { fake, update, weights, warnings } = await served();
    const before = await weights();
    fake.inject(path, fault);
    expect(await update()).toEqual({ applied: false, why: 'failed' });
    expect(await weights()).toEqual(before);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatch(/^policy 'one' was made again from the weights saved after update 1: /);
    expect(warnings[0]).toMatch(reason);
    expect(fake.models).toBe(1);
    expect((await update()).applied).toBe(true);
  });

  it('log-probs that are not numbers before it: asked of a new model, then given up', async () => {
    const { fake, update, weights } = await served();
    const before = await weights();
    fake.inject('forward', { type: 'null' }, { type: 'null' });
    expect(await update()).toEqual({ applied: false, why: 'failed' });
    expect(await weights()).toEqual(before);
    expect(fake.count('optim_step')).toBe(1);
  });
});

describe('what the server lost is made again from the weights last saved', () => {
  it.each(['expire', 'restart'] as const)('after %s', async (event) => {
    const { fake, update, weights, publish, generate, warnings } = await served();
    const [before, written] = [await weights(), await generate()];
    fake[event]();
    expect(await weights()).toEqual(before);
    expect(await generate()).toEqual(written);
    await update();
    await publish();
    fake[event]();
    expect((await generate()).policyVersion).toBe(1);
    expect(warnings).toHaveLength(2);
  });

  it('or named as lost, where nothing was saved', async () => {
    const { backend, fake } = await openOnFake({ directory }, { saveEvery: 99 });
    open.push({ close: () => backend.dispose().then(() => fake.close()) });
    const policy = await backend.open(adapterOn(directory), 'policy', 'one');
    fake.expire();
    await policy.logprobs([sample]); // first weights come again from their seed
    const loss = { type: 'gspo', clipLow: 9, clipHigh: 9 } as const;
    await policy.forwardBackward([sample], { loss, normalizer: 1 });
    await policy.optimStep({ optimizer: adamw, clipNorm: 0 });
    fake.expire();
    await expect(policy.logprobs([sample])).rejects.toThrow(/nothing was saved since its first update/);
  });
});

describe('a server that does not answer', () => {
  const root = temporaryRoot();
  let directory = '';
  let fake: TinkerFake;
  beforeAll(async () => {
    directory = await writeBaseModel(root);
    fake = await TinkerFake.start({ directory });
  });
  afterAll(() => fake.close());

  const DEADLINE = 0.6;
  /** With the usual time limits, so that a single request may take 75 s. */
  const connect = () =>
    TinkerBackend.connect(
      {
        type: 'tinker',
        url: fake.url,
        profile: 'skyrl-jax',
        models: {},
        concurrency: 8,
        saveEvery: 1,
        deadlineSeconds: DEADLINE,
      },
      { host: nodeHost({ warn: () => {} }), models: [adapterOn(directory)], environment: {} },
    );

  /** How an action failed, and after how many seconds. */
  async function ending(action: () => Promise<unknown>) {
    const seconds = stopwatch();
    const error = await action().catch((caught: unknown) => caught);
    return { error: error as Error, seconds: seconds() };
  }

  describe('a server that takes a request and never answers', () => {
    const silent = (path: string) => {
      for (let i = 0; i < 20; i++) fake.inject(path, { type: 'answer', answer: () => {} });
    };

    it.each(['get_server_capabilities', 'create_session', 'create_model', 'retrieve_future'])(
      'with %s: the model is given up after deadlineSeconds, by name',
      async (path) => {
        silent(path);
        const before = fake.log.length;
        const { error, seconds } = await ending(async () => {
          const backend = await connect();
          await backend.open(adapterOn(directory), 'policy', 'one');
        });
        fake.calm();
        expect(error).toBeInstanceOf(BackendError);
        expect(error.message).toMatch(/within 0\.6 s/);
        expect(error.message).toContain(path === 'retrieve_future' ? 'create_model' : path);
        expect(seconds).toBeGreaterThanOrEqual(DEADLINE - 0.1);
        expect(fake.log.slice(before).filter((sent) => sent.path === path).length).toBeLessThanOrEqual(2);
      },
    );

    it.each(['asample', 'forward', 'save_weights_for_sampler', 'save_weights'])(
      'with %s: the call ends by name',
      async (path) => {
        const backend = await connect();
        const policy = await backend.open(adapterOn(directory), 'policy', 'one');
        await policy.publish();
        silent(path);
        const sampled = { prompt: [3, 4], temperature: 1, topP: 1, topK: 0, maxTokens: 3, stopTokens: [] };
        const zeros = new Float32Array(3);
        const sample = {
          ...{
            tokens: Int32Array.of(1, 2, 3),
            mask: Uint8Array.of(0, 1, 1),
            behaviourLogprobs: zeros,
            advantages: zeros,
          },
          temperature: 1,
          policyVersion: 0,
          agent: 'solver',
        };
        const before = fake.log.length;
        const { error } = await ending(() => {
          if (path === 'asample') return policy.generate({ ...sampled, key: randomKey('silent') });
          if (path === 'forward') return policy.logprobs([sample]);
          return path === 'save_weights' ? policy.save(root) : policy.publish();
        });
        fake.calm();
        expect(error).toBeInstanceOf(BackendError);
        expect(error.message).toMatch(new RegExp(`${path}.*within 0\\.6 s`));
        expect(fake.log.slice(before).filter((sent) => sent.path === path).length).toBeLessThanOrEqual(2);
        await backend.dispose();
      },
    );
  });
});
