import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Backend, GenerateRequest, PolicyHandle, WeightsSpec } from '@drmas/engine/contract';
import { BackendError, CheckpointError } from '@drmas/engine/errors';
import { startEmbedded } from '@drmas/engine/internal/embedded/start-embedded';
import type { LossSpec } from '@drmas/engine/loss';
import { randomKey } from '@drmas/engine/math';
import type { TrainingSample } from '@drmas/engine/nouns';
import { nodeFiles, nodeHost } from '@drmas/engine/platform';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { backendContract } from '../../../../test/contracts/backend/index.js';
import { plainAdamW } from '../../../../test/support/adamw.js';
import { writeBaseModel } from '../../../../test/support/tinker-fake/base-model.js';
import { adapterOn, openOnFake } from '../../../../test/support/tinker-fake/open.js';
import type { FakeOptions } from '../../../../test/support/tinker-fake/options.js';
import type { TinkerFake } from '../../../../test/support/tinker-fake/server.js';
import { temporaryRoot } from '../../../../test/support/tiny-run.js';
import { redirecting, webServer } from '../../../../test/support/web-server.js';
import { TinkerBackend } from './tinker-backend.js';
import { type TinkerSpec, tinkerSchema } from './tinker-spec.js';

const root = temporaryRoot();
let directory = '';
const open: { close(): Promise<void> }[] = [];
beforeAll(async () => {
  directory = await writeBaseModel(root);
});
afterAll(() => Promise.all(open.map((each) => each.close())));

async function served(options: Partial<FakeOptions> = {}, spec: Partial<TinkerSpec> = {}) {
  const all = await openOnFake({ directory, ...options }, spec);
  open.push({ close: () => all.backend.dispose().then(() => all.fake.close()) });
  return { ...all, policy: await all.backend.open(adapterOn(directory), 'policy', 'one') };
}

const adamw = plainAdamW(1e-2);
const step = { optimizer: adamw, clipNorm: 0 };
const ppo: LossSpec = { type: 'ppo-clip', clip: 0.2, aggregate: 'token-mean' };

const sample = (tokens: readonly number[], advantage: number, behaviour = -5): TrainingSample => ({
  tokens: Int32Array.from(tokens),
  mask: Uint8Array.from(tokens, (_, t) => (t < 2 ? 0 : 1)),
  behaviourLogprobs: Float32Array.from(tokens, (_, t) => (t < 2 ? 0 : behaviour)),
  advantages: Float32Array.from(tokens, (_, t) => (t < 2 ? 0 : advantage)),
  temperature: 1,
  policyVersion: 0,
  agent: 'agent',
});
const samples = [
  sample([3, 4, 5, 6, 7, 8], 1, -5.5),
  sample([9, 8, 7, 6], -0.5, -5.4),
  sample([9, 8, 7, 6], 0.8, -5.4),
];

const request = (changes: Partial<GenerateRequest> = {}): GenerateRequest => ({
  prompt: [3, 4, 5],
  temperature: 1,
  topP: 1,
  topK: 0,
  maxTokens: 6,
  stopTokens: [],
  key: randomKey('tinker'),
  ...changes,
});

/** Log-probs of the samples after two updates with this loss. */
async function trained(policy: PolicyHandle, loss: LossSpec) {
  for (let i = 0; i < 2; i++) {
    const submitted = [samples.slice(0, 1), samples.slice(1)].map((part) =>
      policy.forwardBackward(part, { loss, normalizer: 8 }),
    );
    await Promise.all([...submitted, policy.optimStep(step)]);
  }
  return policy.logprobs(samples);
}

/** The same for each loss, each with a policy of its own. */
async function trainedEach(backend: Backend, losses: readonly LossSpec[]) {
  const rows: Float32Array[][] = [];
  for (const [i, loss] of losses.entries())
    rows.push(await trained(await backend.open(adapterOn(directory), 'policy', `loss ${i}`), loss));
  return rows;
}

const losses: LossSpec[] = [
  ppo,
  { type: 'ppo-clip', clip: 0.2, dualClip: 3, aggregate: 'seq-mean-token-mean' },
  { type: 'gspo', clipLow: 0.3, clipHigh: 0.3 },
  { type: 'cispo', clipLow: 0.5, clipHigh: 0.2, aggregate: 'token-mean' },
  { type: 's-ppo', clip: 0.01, aggregate: 'token-mean' },
];

describe('any loss on any server moves the weights as the embedded engine does', () => {
  let expected: Float32Array[][] = [];
  beforeAll(async () => {
    const backend = await startEmbedded({ threads: 1, files: nodeFiles });
    expected = await trainedEach(backend, losses);
    await backend.dispose();
  });
  const agrees = async (profile: 'skyrl-jax' | 'hosted' | 'skyrl-train' | 'open-rl') => {
    const { backend } = await served({ behaves: profile }, { profile });
    const rowsThere = await trainedEach(backend, losses);
    expect(expected).toHaveLength(losses.length);
    for (const [l, rows] of expected.entries())
      for (const [r, row] of rows.entries())
        for (const [t, logprob] of row.entries()) expect(rowsThere[l]?.[r]?.[t]).toBeCloseTo(logprob, 3);
  };
  it('hosted', () => agrees('hosted'));
  it.each(['skyrl-jax', 'skyrl-train', 'open-rl'] as const)('%s', { tags: 'verify' }, agrees);
});

it("uses the server's own loss where it means the same, and says the same of it", async () => {
  const [native, exact] = [await served({ behaves: 'hosted' }, { profile: 'hosted' }), await served()];
  const options = { loss: ppo, normalizer: 8 };
  const [a, b] = [
    await native.policy.forwardBackward(samples, options),
    await exact.policy.forwardBackward(samples, options),
  ];
  expect(a.loss).toBeCloseTo(b.loss, 5);
  expect(a.metrics.clipFraction).toBe(b.metrics.clipFraction);
  expect([native.fake.count('forward'), exact.fake.count('forward')]).toEqual([0, 1]);
  const pass = native.fake.log.find(({ path }) => path === 'forward_backward');
  expect(pass?.body).toMatchObject({ forward_backward_input: { loss_fn: 'ppo' } });
});

it("uses the server's own loss where the first of identical samples has no advantage and a later one has", async () => {
  const [native, exact] = [await served({ behaves: 'hosted' }, { profile: 'hosted' }), await served()];
  const [one, ...others] = samples as [TrainingSample, ...TrainingSample[]];
  const copies = [{ ...one, advantages: one.advantages.map(() => 0) }, one, ...others];
  const options = { loss: ppo, normalizer: 8 };
  const [a, b] = [
    await native.policy.forwardBackward(copies, options),
    await exact.policy.forwardBackward(copies, options),
  ];
  expect(native.fake.count('forward')).toBe(0);
  expect(a.loss).toBeCloseTo(b.loss, 5);
  expect(a.metrics.entropy).toBeCloseTo(b.metrics.entropy ?? Number.NaN, 4);
});

it('sends an update to a server that does not keep the order after the results of its passes', async () => {
  const { policy, fake } = await served({ behaves: 'skyrl-jax' }, { profile: 'skyrl-jax' });
  const pass = policy.forwardBackward(samples, { loss: losses[2] as LossSpec, normalizer: 8 });
  await Promise.all([pass, policy.optimStep(step)]);
  const paths = fake.log.map(({ path }) => path.split('/').at(-1));
  const [update, sent] = [paths.lastIndexOf('optim_step'), paths.lastIndexOf('forward_backward')];
  expect(paths.slice(sent, update)).toContain('retrieve_future');
});

it('divides a loss by its clipping bias, which the log-probs of all samples tell', async () => {
  const { policy } = await served();
  const result = await policy.forwardBackward(samples, {
    loss: { type: 's-ppo', clip: 1e-6, aggregate: 'token-mean' },
    normalizer: 8,
  });
  expect(result.metrics.clippingBias).toBeGreaterThan(0);
});

describe('sampling', () => {
  it('gives the log-probs that training computes, and the same again for the same key', async () => {
    const { policy } = await served();
    await policy.publish();
    const [one, again] = [await policy.generate(request()), await policy.generate(request())];
    expect(again).toEqual(one);
    const whole = sample([3, 4, 5, ...one.tokens], 0);
    const [row] = await policy.logprobs([{ ...whole, mask: whole.mask.fill(1, 3).fill(0, 0, 3) }]);
    for (const [t, logprob] of one.logprobs.entries()) expect(row?.[3 + t]).toBeCloseTo(logprob, 4);
    expect(one).toMatchObject({ finishReason: 'length', policyVersion: 0 });
    const stopToken = one.tokens[1] as number;
    const stopped = await policy.generate(request({ stopTokens: [stopToken] }));
    expect(stopped).toMatchObject({ finishReason: 'stop', tokens: one.tokens.slice(0, 2) });
  });

  it('has no more requests in flight than it may', async () => {
    const { fake, policy } = await served({ latencyMs: 20 }, { concurrency: 2 });
    await policy.publish();
    const all = [1, 2, 3, 4, 5].map(() => policy.generate(request()));
    await all[0];
    expect(fake.count('asample')).toBeLessThan(5);
    expect(await Promise.all(all)).toHaveLength(5);
  });

  it('ends where it should on a server that does not stop', async () => {
    const { policy } = await served({ behaves: 'open-rl' }, { profile: 'open-rl' });
    await policy.publish();
    const one = await policy.generate(request());
    expect(one.finishReason).toBe('length');
    const stopped = await policy.generate(request({ stopTokens: [one.tokens[1] as number] }));
    expect(stopped).toMatchObject({ finishReason: 'stop', tokens: one.tokens.slice(0, 2) });
  });

  it('never plays a snapshot older than the weights where that would take training back', async () => {
    const { policy } = await served();
    await policy.publish();
    await trained(policy, ppo);
    await expect(policy.generate(request())).rejects.toThrow(/updated after it was published/);
    await policy.publish();
    expect((await policy.generate(request())).policyVersion).toBe(1);

    const isolated = await served({ behaves: 'hosted' }, { profile: 'hosted' });
    await isolated.policy.publish();
    const before = await isolated.policy.generate(request());
    await trained(isolated.policy, ppo);
    expect(await isolated.policy.generate(request())).toEqual(before);
  });
});

describe('what is refused before it is sent', () => {
  it('ids outside the vocabulary, lengths that differ, prompts without room', async () => {
    const { fake, policy } = await served();
    await policy.publish();
    const sent = fake.log.length;
    const forward = (changed: Partial<TrainingSample>) =>
      policy.logprobs([{ ...(samples[0] as TrainingSample), ...changed }]);
    await expect(forward({ tokens: Int32Array.from([3, 4, 5, 6, 7, 9999]) })).rejects.toThrow(/token 5 is 9999/);
    await expect(forward({ mask: new Uint8Array(3) })).rejects.toThrow(/mask has 3 entries, tokens 6/);
    await expect(forward({ temperature: 0.5 })).rejects.toThrow(/temperature 1/);
    await expect(policy.generate(request({ prompt: [] }))).rejects.toThrow(BackendError);
    await expect(policy.generate(request({ prompt: new Array(64).fill(1) }))).rejects.toThrow(/no room/);
    expect(await policy.logprobs([])).toEqual([]);
    expect(await policy.optimStep(step)).toEqual({ applied: true, norm: 0 });
    expect(fake.log.slice(sent).filter(({ path }) => path !== 'session_heartbeat')).toEqual([]);
  });

  it('models that the server does not have, whole models, half of a block', async () => {
    await expect(openOnFake({ directory, model: 'other' })).rejects.toThrow(/no model '.*'; it has other/);
    const { backend, policy } = await served();
    const open = (weights: WeightsSpec) => backend.open(weights, 'policy', 'two');
    await expect(open({ type: 'directory', directory })).rejects.toThrow(/trains only adapters/);
    await expect(open(adapterOn(directory, 1, 64))).rejects.toThrow(/rank 64/);
    await expect(backend.open({ type: 'like', policy }, 'critic', 'two')).rejects.toThrow(/has no critics/);
  });

  it('a wrong key, which no message shows', async () => {
    const options = { directory, apiKey: 'right' };
    const error = await openOnFake(options).catch((thrown: Error) => thrown);
    expect(String(error)).toMatch(/401.*Invalid API key/);
  });

  it.each([301, 302, 303, 307, 308])('a server that sends key and requests on to another one (%i)', async (status) => {
    const other = await webServer((_, response) => void response.end('{}'));
    const { url } = await redirecting(status, other.url);
    const spec = { type: 'tinker', url, apiKey: 'tml-secret' };
    const connecting = TinkerBackend.connect(tinkerSchema.parse(spec), { host: nodeHost(), models: [] });
    await expect(connecting).rejects.toThrow(
      `get_server_capabilities: ${status}: the server redirects requests to ${other.url}; drmas sends them only to ${url}`,
    );
    expect(other.requests).toEqual([]);
  });
});

describe('checkpoints', () => {
  it('go on after a restart of the server as if nothing had happened', async () => {
    const { backend, fake, connect, policy } = await served({ behaves: 'skyrl-jax-head' });
    await trained(policy, ppo);
    const path = join(root, 'saved');
    await mkdir(path);
    await policy.save(path);
    const expected = await trained(policy, ppo);
    await backend.dispose();
    fake.restart();
    const again = await connect();
    const one = await again.open(adapterOn(directory), 'policy', 'one');
    await one.load(path, { optimizer: true });
    expect(await trained(one, ppo)).toEqual(expected);
    fake.forget();
    await expect(one.load(path, { optimizer: true })).rejects.toThrow(CheckpointError);
    await again.dispose();
  });

  it('are of one model and rank', async () => {
    const { backend, policy } = await served();
    const path = join(root, 'other-rank');
    await mkdir(path);
    await policy.save(path);
    const wide = await backend.open(adapterOn(directory, 1, 4), 'policy', 'wide');
    await expect(wide.load(path, { optimizer: false })).rejects.toThrow(/has rank 4, the checkpoint 2/);
    await expect(policy.load(root, { optimizer: false })).rejects.toThrow(CheckpointError);
    await expect(wide.copyFrom(policy)).rejects.toThrow(/models differ/);
  });
});

describe('saves between two checkpoints', () => {
  const update = async (policy: PolicyHandle) => {
    const pass = policy.forwardBackward(samples, { loss: ppo, normalizer: 8 });
    await Promise.all([pass, policy.optimStep(step)]);
    await policy.publish();
  };

  it.each(['drmas', 'hosted'] as const)('replace each other on a server that deletes weights: %s', async (profile) => {
    const { policy, fake } = await served({ behaves: 'hosted' }, { profile });
    for (const name of ['first', 'second']) {
      await update(policy);
      await update(policy);
      const path = join(root, `${profile}-${name}`);
      await mkdir(path);
      await policy.save(path);
    }
    const saved = fake.log.filter(({ path }) => path === 'save_weights').map(({ body }) => String(body.path));
    const deleted = fake.log.filter(({ path }) => path.startsWith('training_runs')).map(({ path }) => path);
    expect(saved).toHaveLength(6);
    const superseded = [0, 1, 3].map((i) =>
      expect.stringMatching(`^training_runs/.+/checkpoints/weights/${saved[i]}$`),
    );
    expect(deleted).toEqual(profile === 'drmas' ? superseded : []);
  });

  it('end no training if they fail: one warning names the loss, and the next update saves again', async () => {
    const { policy, fake, warnings } = await served();
    await update(policy);
    const body = { error: 'the saved state needs 90.0 kB of disk', category: 'user' };
    for (let i = 0; i < 2; i++) {
      fake.inject('save_weights', { type: 'status', status: 400, body });
      await update(policy);
    }
    expect(warnings).toEqual([
      "policy 'one' could not be saved after update 2; if the server loses it, its updates since update 1 are lost: " +
        'save_weights: the server answered 400: the saved state needs 90.0 kB of disk',
    ]);
    await update(policy);
    fake.expire();
    await policy.logprobs(samples);
    expect(warnings[1]).toMatch(/made again from the weights saved after update 4/);
    fake.inject('save_weights', { type: 'status', status: 400, body });
    await expect(policy.save(root)).rejects.toThrow(/of disk/);
  });
});

describe('the contract of backends', () => {
  const root = temporaryRoot();
  const directory = `${root}/base-model`;
  const fakes: TinkerFake[] = [];
  beforeAll(async () => {
    await writeBaseModel(root);
  });
  afterAll(() => Promise.all(fakes.map((fake) => fake.close())));

  // One server in the daily tests: the tests above look at the differences between them.
  for (const [profile, tags] of [
    ['hosted', []],
    ['skyrl-jax', ['verify']],
    ['skyrl-train', ['verify']],
    ['open-rl', ['verify']],
  ] as const)
    describe('one server', { tags: [...tags] }, () =>
      backendContract(`the client of a server like ${profile}`, {
        async open() {
          const { backend, fake } = await openOnFake({ directory, behaves: profile, maxModels: 200 }, { profile });
          fakes.push(fake);
          return backend;
        },
        weights: (seed) => adapterOn(directory, seed),
        misfit: adapterOn(directory, 1, 4),
        digits: 3,
        learns: 0.02,
        root,
      }),
    );
});
