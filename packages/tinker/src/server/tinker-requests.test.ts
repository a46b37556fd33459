/** Requests that clients other than ours may send, and their results. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { DialectError } from '@drmas/engine/errors';
import type { Host } from '@drmas/engine/host';
import { checkpoint, lora } from '@drmas/engine/model';
import { nodeHost, readArchive } from '@drmas/engine/platform';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { backendContract } from '../../../../test/contracts/backend/index.js';
import { plainAdamW } from '../../../../test/support/adamw.js';
import { drmas } from '../../../../test/support/command-line.js';
import { serveTinker, type TinkerServer } from '../../../../test/support/serve-tinker.js';
import { freePort } from '../../../../test/support/server-process.js';
import { eventually, processorSeconds, stopwatch, takesTime } from '../../../../test/support/time-and-chance.js';
import { writeBaseModel } from '../../../../test/support/tinker-fake/base-model.js';
import { adapterOn, remoteRecipe, writeSymbolsModel } from '../../../../test/support/tinker-fake/open.js';
import { playedBits, temporaryRoot, tinyRecipe, trainTiny } from '../../../../test/support/tiny-run.js';
import { TinkerBackend } from '../client/tinker-backend.js';
import type { TinkerSpec } from '../client/tinker-spec.js';
import type { TinkerRequest } from './open-tinker.js';
import { Futures } from './pending-requests.js';
import { readPassRequest, writeSampleOutput } from './protobuf.js';
import { tokenPass } from './token-pass.js';

const root = temporaryRoot();
let server: TinkerServer;
beforeAll(async () => {
  const model = await writeBaseModel(root);
  await mkdir(join(root, 'store', 'model', 'weights'), { recursive: true });
  for (const folder of ['', 'model', 'model/weights'])
    for (const name of ['.DS_Store', 'Thumbs.db', 'a copy']) await writeFile(join(root, 'store', folder, name), 'x');
  server = await serveTinker({ model, store: join(root, 'store'), token: 'secret', mostModels: 3, idleSeconds: 2 });
});
afterAll(() => server.close());

const headers = { 'x-api-key': 'secret', 'content-type': 'application/json' };

async function post(route: string, body: unknown) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const response = await fetch(`${server.url}/api/v1/${route}`, { method: 'POST', headers, body: text });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

it('lists no files of other programs', async () => {
  const listed = await fetch(`${server.url}/api/v1/training_runs/model/checkpoints`, { headers });
  expect([listed.status, await listed.json()]).toEqual([200, { checkpoints: [] }]);
});

/** The result of a request that was taken in. */
async function ask(route: string, body: object): Promise<Record<string, unknown>> {
  const { status, body: submitted } = await post(route, body);
  expect({ status, submitted }).toMatchObject({ status: 200, submitted: { request_id: expect.any(String) } });
  return (await post('retrieve_future', { request_id: submitted.request_id })).body;
}

const open = async () => String((await post('create_session', {})).body.session_id);
async function model(session: string, settings: object = {}): Promise<string> {
  const body = { session_id: session, base_model: 'base-model', lora_config: { rank: 2, seed: 1, ...settings } };
  const id = String((await ask('create_model', body)).model_id);
  models.push(id);
  return id;
}
const models: string[] = [];
afterEach(() => Promise.all(models.splice(0).map((model_id) => ask('unload_model', { model_id }))));

const tensor = (data: readonly number[]) => ({ data, dtype: 'float32', shape: [data.length] });
const datum = (tokens: readonly number[], inputs: Readonly<Record<string, readonly number[]>> = {}) => ({
  model_input: { chunks: [{ type: 'encoded_text', tokens: tokens.slice(0, -1) }] },
  loss_fn_inputs: Object.fromEntries(
    Object.entries({ target_tokens: tokens.slice(1), ...inputs }).map(([name, data]) => [name, tensor(data)]),
  ),
});
const batch = (data: readonly unknown[], loss_fn = 'cross_entropy', loss_fn_config = {}) => ({
  forward_backward_input: { data, loss_fn, loss_fn_config },
});
const good = datum([1, 2, 3, 4]);
async function learn(model_id: string) {
  await ask('forward_backward', { model_id, ...batch([good]) });
  await ask('optim_step', { model_id, adam_params: { learning_rate: 0.1 } });
}
/** The log-probs of a model, as text. */
async function scored(model_id: string): Promise<string> {
  const body = { model_id, forward_input: batch([good]).forward_backward_input };
  return JSON.stringify((await ask('forward', body)).loss_fn_outputs);
}

describe('a server of the Tinker protocol', () => {
  it('requires its token, and answers with JSON to any request', async () => {
    const bare = await fetch(`${server.url}/api/v1/get_server_capabilities`);
    expect([bare.status, await bare.json()]).toEqual([401, { detail: expect.stringMatching(/token/) }]);
    for (const body of ['', '[', 'null', '{"model_id":3}', `${'['.repeat(600)}${']'.repeat(600)}`, '"\u0000"']) {
      for (const route of ['create_model', 'forward_backward', 'optim_step', 'asample', 'retrieve_future', 'nothing']) {
        const { status, body: answer } = await post(route, body);
        expect(status).toBeGreaterThanOrEqual(400);
        expect(status).toBeLessThan(500);
        expect(answer).toEqual({ detail: expect.any(String) });
      }
    }
  });

  it('names the faults of a batch, and keeps its weights and gradients unchanged', async () => {
    const session = await open();
    const model_id = await model(session);
    const before = await scored(model_id);
    const logprobs = [-1, -1, -1];
    const cases: [unknown[], string, object, RegExp][] = [
      [[datum([1, 2, 999])], 'cross_entropy', {}, /datum 0: token 2 is 999, expected a token id of 0 to 260/],
      [[good, datum(Array(70).fill(1))], 'cross_entropy', {}, /datum 1: 70 tokens do not fit .* context of 64/],
      [[datum([1, 2, 3], { target_tokens: [2, 9] })], 'ppo', {}, /datum 0: logprobs is missing/],
      [[datum([1, 2, 3], { target_tokens: [7, 3] })], 'cross_entropy', {}, /target 0 is 7, but the next input is 2/],
      [[datum([1, 2, 3, 4], { logprobs })], 'importance_sampling', {}, /advantages is missing/],
      [[datum([1, 2, 3], { weights: [1] })], 'cross_entropy', {}, /weights has the shape \[1\], expected \[2\]/],
      [[good], 'dro', {}, /there is no loss_fn 'dro'; this server has cross_entropy/],
      [[datum([1, 2, 3, 4], { logprobs, advantages: logprobs })], 'ppo', { clip: 1 }, /loss_fn_config has no 'clip'/],
    ];
    for (const [data, loss, config, message] of cases)
      expect(await post('forward_backward', { model_id, ...batch(data, loss, config) })).toEqual({
        status: 400,
        body: { detail: expect.stringMatching(message) },
      });
    expect((await post('forward_backward', { model_id, ...batch([]) })).status).toBe(422);
    await ask('optim_step', { model_id, adam_params: { learning_rate: 1 } });
    expect(await scored(model_id)).toBe(before);
  });

  it('makes a numbered model of a session once, and refuses another one under its number', async () => {
    const session_id = await open();
    const wish = { session_id, model_seq_id: 0, base_model: 'base-model', lora_config: { rank: 2, seed: 1 } };
    const made = await ask('create_model', wish);
    models.push(String(made.model_id));
    expect(await ask('create_model', wish)).toEqual(made);
    for (const other of [
      { rank: 4, seed: 1 },
      { rank: 2, seed: 2 },
      { rank: 2, seed: 1, train_mlp: false },
    ])
      expect(await post('create_model', { ...wish, lora_config: other })).toEqual({
        status: 409,
        body: { detail: expect.stringContaining('model_seq_id was reused') },
      });
  });

  it('does a numbered request once, and refuses another one under its number', async () => {
    const session = await open();
    const model_id = await model(session);
    const learn = { model_id, seq_id: 1, ...batch([datum([1, 2, 3])]) };
    const [first, again] = [await post('forward_backward', learn), await post('forward_backward', learn)];
    expect(again.body.request_id).toBe(first.body.request_id);
    const other = { ...learn, ...batch([datum([1, 2, 4])]) };
    expect(await post('forward_backward', other)).toEqual({
      status: 409,
      body: { detail: 'Training request sequence number was reused' },
    });
    const norm = async (body: object) => {
      await ask('forward_backward', body);
      return (
        (await ask('optim_step', { model_id, adam_params: { learning_rate: 0 } })).metrics as { grad_norm: number }
      ).grad_norm;
    };
    const once = await norm(learn);
    expect(await norm({ ...learn, seq_id: 2 })).toBe(once);
    const twice = { ...learn, seq_id: 3, ...batch([datum([1, 2, 3]), datum([1, 2, 3], { weights: [1, 1] })]) };
    expect(await norm(twice)).toBeCloseTo(2 * once, 4);
  });

  it('gives models back with their session, and holds no more of them than it may', {
    tags: 'verify',
  }, async () => {
    const session = await open();
    await eventually(async () => expect(await model(session)).toMatch(/:train:/)); // earlier sessions have ended
    for (const seconds = stopwatch(); seconds() < 3; ) await post('session_heartbeat', { session_id: session });
    const ids = [await model(session), await model(session)];
    const more = { session_id: session, base_model: 'base-model' };
    expect(await post('create_model', more)).toEqual({
      status: 400,
      body: { detail: expect.stringMatching(/there are already 3 models/) },
    });
    expect(await post('create_model', { ...more, base_model: 'base' })).toEqual({
      status: 400,
      body: { detail: expect.stringMatching(/'base' is not served.*base-model/) },
    });
    await ask('unload_model', { model_id: ids[0] });
    await model(session);
    expect((await post('session_heartbeat', { session_id: await open() })).status).toBe(200);
    await takesTime(3500);
    expect(await post('get_info', { model_id: ids[1] })).toEqual({ status: 404, body: { detail: 'Model not found' } });
    expect((await post('session_heartbeat', { session_id: session })).status).toBe(404);
  });

  it('packs saved adapters, keeps names apart, reaches nothing outside its folder, and skips the files of others', async () => {
    const session = await open();
    const model_id = await model(session);
    const { path } = await ask('save_weights_for_sampler', { model_id, path: 'kept' });
    expect(path).toBe(`tinker://${model_id}/sampler_weights/kept`);
    expect(await ask('save_weights_for_sampler', { model_id, path: 'kept' })).toMatchObject({
      error: expect.stringMatching(/'kept' already exists/),
    });
    const url = `${server.url}/api/v1/training_runs/${model_id}/checkpoints`;
    const archive = await fetch(`${url}/sampler_weights/kept/archive`, { headers });
    const files = readArchive(new Uint8Array(await archive.arrayBuffer()));
    expect([...files.keys()]).toEqual(['adapter_config.json', 'adapter_model.safetensors']);
    expect(JSON.parse(Buffer.from(files.get('adapter_config.json') ?? []).toString())).toMatchObject({ r: 2 });
    for (const name of ['../x', '..', 'a/b', '.hidden', ''])
      expect((await post('save_weights', { model_id, path: name })).status).toBe(422);
    for (const bad of ['/etc/passwd', 'tinker://../weights/x', `tinker://${model_id}/weights/../../x`])
      expect((await post('load_weights', { model_id, path: bad })).status).toBe(422);
    const session_id = session;
    expect(await post('create_sampling_session', { session_id, model_path: path })).toMatchObject({ status: 200 });
    expect((await fetch(`${url}/sampler_weights/kept`, { method: 'DELETE', headers })).status).toBe(204);
    expect((await post('create_sampling_session', { session_id, model_path: path })).status).toBe(404);
  });

  it('samples the weights that were saved last under a name, and no longer those that were removed', async () => {
    const session_id = await open();
    const model_id = await model(session_id);
    const prompt = { chunks: [{ type: 'encoded_text', tokens: [1, 2, 3, 4] }] };
    const draw = { prompt, sampling_params: { max_tokens: 1 }, prompt_logprobs: true };
    const logprobsOf = async (source: object) => (await ask('asample', { ...draw, ...source })).prompt_logprobs;
    const save = async () => {
      const { path: model_path } = await ask('save_weights_for_sampler', { model_id, path: 'latest' });
      const { body } = await post('create_sampling_session', { session_id, model_path });
      const sampler = { sampling_session_id: body.sampling_session_id };
      return { sampler, logprobs: await logprobsOf(sampler), passing: await logprobsOf({ model_path }) };
    };
    const now = async () => {
      const { sampling_session_id } = await ask('save_weights_for_sampler', { model_id });
      return logprobsOf({ sampling_session_id });
    };
    await learn(model_id);
    const [first, before] = [await save(), await now()];
    await learn(model_id);
    const url = `${server.url}/api/v1/training_runs/${model_id}/checkpoints/sampler_weights/latest`;
    expect((await fetch(url, { method: 'DELETE', headers })).status).toBe(204);
    const gone = { status: 404, body: { detail: 'Sampling session not found' } };
    expect(await post('asample', { ...draw, ...first.sampler })).toEqual(gone);
    const [second, after] = [await save(), await now()];
    expect(after).not.toEqual(before);
    expect(first).toMatchObject({ logprobs: before, passing: before });
    expect(second).toMatchObject({ logprobs: after, passing: after });
    expect(await post('asample', { ...draw, ...first.sampler })).toEqual(gone);
  });

  it('keeps a trained model if weights of another alpha cannot be loaded, and names them by their path', async () => {
    const session = await open();
    const [source, target] = [await model(session, { alpha: 8 }), await model(session)];
    for (const model_id of [source, target]) await learn(model_id);
    const before = [await scored(source), await scored(target)];
    const load = (path: unknown) => ask('load_weights', { model_id: target, path, optimizer: true });
    const { path } = await ask('save_weights_for_sampler', { model_id: source, path: 'without-optimiser' });
    const refused = await load(path);
    expect(refused).toEqual({ error: expect.stringContaining(`${path}/`), category: 'user' });
    expect(refused.error).not.toContain(root);
    expect(await scored(target)).toBe(before[1]);
    const { path: whole } = await ask('save_weights', { model_id: source, path: 'whole' });
    expect(await load(whole)).toMatchObject({ model_id: target });
    expect(await scored(target)).toBe(before[0]);
    for (const model_id of [source, target]) await learn(model_id);
    expect(await scored(target)).toBe(await scored(source));
  });
});

describe('protobuf', () => {
  /** A request as the official client 0.38.0 wrote it. */
  const recorded = Buffer.from(
    'CglzOnRyYWluOjAQAxqIAQoQCg4KDAEAAAACAAAAAwAAABIhCgphZHZhbnRhZ2VzEhMKDAAAAAAAAIA/AAAAvxgBIgEDEh8KCGxvZ3Byb2JzEhMK' +
      'DAAAwL8AAADAAACAvhgBIgEDEjAKDXRhcmdldF90b2tlbnMSHwoYAgAAAAAAAAADAAAAAAAAAAQAAAAAAAAAGAIiAQMiA3BwbyoeChNjbGlwX2hp' +
      'Z2hfdGhyZXNob2xkEQAAAAAAAPg/Kh0KEmNsaXBfbG93X3RocmVzaG9sZBHNzMzMzMzsPzogChNjbGlwX2hpZ2hfdGhyZXNob2xkEgkJAAAAAAAA' +
      '+D86HwoSY2xpcF9sb3dfdGhyZXNob2xkEgkJzczMzMzM7D8=',
    'base64',
  );

  it('reads the messages of the official client', () => {
    const { forward_backward_input, ...rest } = readPassRequest(recorded);
    expect(rest).toEqual({ model_id: 's:train:0', seq_id: 3, forward_only: false });
    const { samples, spec } = tokenPass(forward_backward_input, { vocabSize: 9, context: 9 });
    expect(spec).toMatchObject({ type: 'ppo-clip', clipHigh: 0.5 });
    expect(samples).toMatchObject([
      { tokens: Int32Array.of(1, 2, 3, 4), behaviourLogprobs: Float32Array.of(0, -1.5, -2, -0.25) },
    ]);
    expect(samples[0]?.advantages).toEqual(Float32Array.of(0, 0, 1, -0.5));
  });

  it('refuses every part of it that is cut off, and never breaks over other bytes', () => {
    for (let length = 0; length < recorded.length; length++) {
      const bytes = recorded.subarray(0, length);
      for (const input of [bytes, Buffer.concat([recorded.subarray(length), bytes])])
        try {
          readPassRequest(input);
        } catch (error) {
          expect(error).toBeInstanceOf(DialectError);
        }
    }
  });

  it.each([
    ['datums', [0x1a, 0], 8193],
    ['chunks of a datum', [0x0a, 4, 0x0a, 2, 0x0a, 0], 4097],
  ])('refuses more %s than a JSON body may have', (what, element, count) => {
    const list = Buffer.concat(Array.from({ length: count }, () => Buffer.from(element)));
    const body = what === 'datums' ? list : new BinaryWriter().tag(3, WireType.LengthDelimited).bytes(list).finish();
    expect(() => readPassRequest(body)).toThrow(`expected at most ${count - 1} ${what}`);
  });

  it.each([
    [{ target_tokens: [2, 2 ** 32 + 4] }, /token 2 is 4294967300, expected a token id of 0 to 8/],
    [{ target_tokens: [2, 1.5] }, /token 2 is 1\.5, expected/],
    [{ target_tokens: [2, 3], weights: [1, Number.NaN] }, /weights 1 is NaN, expected a finite number/],
    [{ target_tokens: [2, 3], weights: [1, Infinity] }, /weights 1 is Infinity, expected a finite number/],
  ])('refuses the numbers of %j, which no schema has seen', (inputs, message) => {
    const named = Object.entries(inputs).map(([name, data]) => [name, { data }]);
    const data = [{ model_input: { chunks: [{ tokens: [1, 2] }] }, loss_fn_inputs: Object.fromEntries(named) }];
    const limits = { vocabSize: 9, context: 9 };
    expect(() => tokenPass({ data, loss_fn: 'cross_entropy' }, limits)).toThrow(message);
  });

  it('writes samples with their numbers', () => {
    const sequences = [{ tokens: [5, 6], logprobs: [-0.5, -1], finishReason: 'length' as const }];
    const reader = new BinaryReader(writeSampleOutput({ sequences, promptLogprobs: [null, -2] }));
    expect(reader.tag()[0]).toBe(1);
    const sequence = new BinaryReader(reader.bytes());
    expect([sequence.tag()[0], sequence.int32(), sequence.tag()[0]]).toEqual([1, 1, 2]);
    expect(new Int32Array(Uint8Array.from(sequence.bytes()).buffer)).toEqual(Int32Array.of(5, 6));
    expect(reader.tag()[0]).toBe(2);
    expect(new Float32Array(Uint8Array.from(reader.bytes()).buffer)).toEqual(Float32Array.of(Number.NaN, -2));
  });
});

describe('serve --tinker', () => {
  it('makes and prints a token if it was given none, and answers nobody without it', async () => {
    const port = await freePort();
    const ending = new AbortController();
    const words = ['serve', join(root, 'base-model'), '--tinker', '--port', `${port}`, '--threads', '1'];
    const ended = drmas(words, { signal: ending.signal, environment: {} });
    const at = `http://127.0.0.1:${port}/api/v1`;
    await eventually(async () => (await fetch(`${at}/healthz`)).ok);
    expect(
      (await fetch(`${at}/create_session`, { method: 'POST', headers: { ...headers, 'x-api-key': '' } })).status,
    ).toBe(401);
    ending.abort(new Error('interrupted'));
    expect((await ended).out).toMatch(/Tinker protocol: http:\S+\nTINKER_API_KEY=tml-[\w-]{32}\n$/);
  });

  it.each([
    [['base-model', '--store', 'x'], /--store, --max-adapters, --memory and --disk need --tinker/],
    [['no-such-model', '--tinker'], /no-such-model/],
    [['base-model', '--tinker', '--host', '0.0.0.0'], /other machines can reach 0.0.0.0: set a token/],
  ])('refuses %j', async ([name = '', ...words], message) => {
    const { code, err } = await drmas(['serve', join(root, name), ...words], { environment: {} });
    expect({ code, err }).toEqual({ code: 2, err: expect.stringMatching(message) });
  });
});

describe('results that are fetched later', () => {
  it('counts open requests, answers and errors alike, and refuses more than its limit', async () => {
    const futures = new Futures(2);
    let answer: (value: number) => void = () => {};
    const first = futures.add(
      () =>
        new Promise((resolve) => {
          answer = resolve;
        }),
    );
    const second = futures.add(async () => {
      throw new Error('no such model');
    });
    expect(futures.pending).toBe(2);
    expect(() => futures.add(async () => 1)).toThrow(DialectError);
    expect(await futures.fetch(second, 1000)).toMatchObject({ status: 'rejected' });
    expect(futures.pending).toBe(1);
    answer(7);
    expect(await futures.fetch(first, 1000)).toEqual({ status: 'fulfilled', value: 7 });
    expect(futures.pending).toBe(0);
  });

  it('takes a request in without a look at all the others, which may be ten thousands', {
    tags: 'verify',
  }, async () => {
    const futures = new Futures(Number.POSITIVE_INFINITY);
    const seconds = await processorSeconds(() => {
      for (let i = 0; i < 60_000; i++) futures.add(async () => i);
    });
    expect(seconds).toBeLessThan(2);
    await futures.idle();
    expect(futures.pending).toBe(0);
  });

  it('keeps a bounded number of results that nobody fetches, the newest ones', { tags: 'verify' }, async () => {
    const futures = new Futures(1);
    const ids: string[] = [];
    for (let i = 0; i < 20_000; i++) {
      ids.push(futures.add(async () => i));
      await futures.fetch(ids.at(-1) as string, 1000);
    }
    const isKept = (id: string) =>
      futures.fetch(id, 1000).then(
        () => 1,
        () => 0,
      );
    const kept = await Promise.all(ids.map(isKept));
    const count = kept.reduce<number>((sum, each) => sum + each, 0);
    expect(count).toBeGreaterThanOrEqual(4096);
    expect(count).toBeLessThanOrEqual(8192);
    expect(kept.lastIndexOf(0)).toBeLessThan(kept.indexOf(1));
  });

  it('waits at the end for requests whose client still asks, and not for those whose client has gone', async () => {
    const futures = new Futures(2);
    const id = futures.add(() => new Promise(() => {}));
    let over = false;
    const idle = futures.idle(100).then(() => {
      over = true;
    });
    for (let i = 0; i < 4; i++) await futures.fetch(id, 60);
    expect(over).toBe(false);
    const gone = new AbortController();
    const poll = futures.fetch(id, 60_000, gone.signal);
    gone.abort();
    expect(await poll).toBe('pending');
    await idle;
    expect(futures.pending).toBe(1);
  });
});

describe('our own client', { tags: 'verify' }, () => {
  const root = temporaryRoot();
  const directory = join(root, 'base-model');
  const store = join(root, 'store');
  const servers: TinkerServer[] = [];
  const serve = async (model: string, request: Partial<TinkerRequest> = {}) => {
    const server = await serveTinker({ model, store, ...request });
    servers.push(server);
    return server;
  };
  beforeAll(async () => {
    await writeBaseModel(root);
  });
  afterAll(() => Promise.all(servers.map((server) => server.close())));

  const connect = ({ url, apiKey }: TinkerServer, spec: Partial<TinkerSpec> = {}, host: Partial<Host> = {}) =>
    TinkerBackend.connect(
      { type: 'tinker', url, profile: 'auto', models: {}, concurrency: 8, saveEvery: 1, deadlineSeconds: 30, ...spec },
      { host: nodeHost(host), models: [adapterOn(directory)], environment: { TINKER_API_KEY: apiKey } },
    );

  backendContract('the client of our own server', {
    open: async () => connect(await serve(directory)),
    weights: (seed) => adapterOn(directory, seed),
    misfit: adapterOn(directory, 1, 4),
    learns: 0.02,
    root,
  });

  it('trains on a disk with room for a few saves, and leaves the weights of its checkpoint there', async () => {
    const there = await serve(directory, { store: join(root, 'small'), disk: 1.2e5 });
    const warnings: string[] = [];
    const backend = await connect(there, {}, { warn: (_, message) => void warnings.push(message) });
    const policy = await backend.open(adapterOn(directory), 'policy', 'one');
    const tokens = Int32Array.of(3, 4, 5);
    const zeros = new Float32Array(3);
    const sample = { tokens, mask: Uint8Array.of(0, 1, 1), behaviourLogprobs: zeros, advantages: zeros.map(() => 1) };
    const passed = [{ ...sample, temperature: 1, policyVersion: 0, agent: 'one' }];
    for (let i = 0; i < 20; i++) {
      await policy.forwardBackward(passed, { loss: { type: 'gspo', clipLow: 9, clipHigh: 9 }, normalizer: 1 });
      await policy.optimStep({ optimizer: plainAdamW(1e-2), clipNorm: 0 });
      await policy.publish();
      if (i === 4) await policy.save(root);
    }
    expect(warnings).toEqual([]);
    await policy.load(root, { optimizer: true });
    await backend.dispose();
  });

  describe('a run through our own server', () => {
    it('is the run of the embedded engine, bit for bit: episodes, events and the next step from a checkpoint', {
      tags: 'verify',
    }, async () => {
      const symbols = await writeSymbolsModel(root, { name: 'symbols' });
      const { url, apiKey } = await serve(symbols);
      const model = lora(checkpoint(symbols), { rank: 4, alpha: 8 });
      const overrides = ['training.steps=3', 'evaluation.tasks=2'];
      const changes = { model, warmStart: undefined } as unknown as Parameters<typeof tinyRecipe>[0];
      const there = await trainTiny(root, remoteRecipe(symbols, { url, apiKey }, changes, overrides));
      const here = await trainTiny(root, tinyRecipe(changes, overrides));
      const [served, embedded] = [await playedBits(there), await playedBits(here)];
      expect(embedded.events.length).toBeGreaterThan(4);
      expect(served).toEqual(embedded);
      // The weights changed, and so did the values that must agree.
      const norms = embedded.events.flatMap((event) =>
        event.type === 'step' ? [event.policies.solver?.gradientNorm] : [],
      );
      expect(new Set(norms).size).toBe(norms.length);
    });
  });
});
