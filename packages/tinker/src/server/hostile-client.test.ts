// @module-tag verify
/** Requests of a hostile client, each refused at once, while an honest client trains as on a server of its own. */
import { readdirSync, statSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { nodeFiles } from '@drmas/engine/platform';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { serveTinker, type TinkerServer } from '../../../../test/support/serve-tinker.js';
import { processorSeconds } from '../../../../test/support/time-and-chance.js';
import { writeBaseModel } from '../../../../test/support/tinker-fake/base-model.js';
import { temporaryRoot } from '../../../../test/support/tiny-run.js';
import { WeightsStore } from './weights-store.js';

const root = temporaryRoot();
let directory = '';
const servers: TinkerServer[] = [];
const MEGABYTE = 1e6;
const serve = async (store: string, disk?: number) => {
  const server = await serveTinker({ model: directory, store: join(root, store), memory: MEGABYTE, disk });
  servers.push(server);
  return server;
};
beforeAll(async () => {
  directory = await writeBaseModel(root);
});
afterAll(() => Promise.all(servers.map((server) => server.close())));

interface Reply {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

/** A client of one server. */
function clientOf({ url, apiKey }: TinkerServer) {
  const send = async (route: string, text: string, type = 'application/json'): Promise<Reply> => {
    const sent = { method: 'POST', headers: { 'x-api-key': apiKey, 'content-type': type }, body: text };
    const response = await fetch(`${url}/api/v1/${route}`, sent);
    const body = (await response.json()) as Record<string, unknown>;
    return { status: response.status, body };
  };
  const post = (route: string, body: unknown) => send(route, JSON.stringify(body));
  const ask = async (route: string, body: object): Promise<Record<string, unknown>> => {
    const { body: submitted } = await post(route, body);
    return (await post('retrieve_future', { request_id: submitted.request_id })).body;
  };
  const session = async () => String((await post('create_session', {})).body.session_id);
  const model = async (of: string, rank = 2) =>
    String(
      (await ask('create_model', { session_id: of, base_model: 'base-model', lora_config: { rank, seed: 1 } }))
        .model_id,
    );
  return { send, post, ask, session, model };
}

const tensor = (data: unknown) => ({ data, dtype: 'int64' });
const datum = (inputs: unknown, targets: unknown, further: object = {}) => ({
  model_input: { chunks: [{ type: 'encoded_text', tokens: inputs }] },
  loss_fn_inputs: { target_tokens: tensor(targets), ...further },
});
const batch = (data: unknown, loss_fn: unknown = 'cross_entropy', loss_fn_config: unknown = {}) => ({
  forward_backward_input: { data, loss_fn, loss_fn_config },
});
const honest = datum([1, 2, 3], [2, 3, 4]);

/** Trains, and returns all numbers that the server gives. */
async function numbersOf({ ask, session, model }: ReturnType<typeof clientOf>) {
  const model_id = await model(await session());
  const numbers: unknown[] = [];
  for (let step = 0; step < 3; step++) {
    numbers.push(await ask('forward_backward', { model_id, ...batch([honest, datum([7, 9], [9, 5])]) }));
    numbers.push(await ask('optim_step', { model_id, adam_params: { learning_rate: 1e-2 } }));
  }
  await ask('unload_model', { model_id });
  return numbers;
}

type Case = readonly [
  name: string,
  route: string,
  body: (ids: { model_id: string; session_id: string }) => unknown,
  error: RegExp,
];

const pass = (name: string, content: unknown, error: RegExp): Case => [
  name,
  'forward_backward',
  ({ model_id }) => ({ model_id, ...(content as object) }),
  error,
];
const withId = (id: unknown, error: RegExp) => [
  pass(`an input of ${JSON.stringify(id)}`, batch([datum([1, id, 3], [id, 3, 4])]), error),
  pass(`a last target of ${JSON.stringify(id)}`, batch([datum([1, 2], [2, id])]), error),
];
const create = (lora_config: object, error: RegExp): Case => [
  `an adapter of ${JSON.stringify(lora_config)}`,
  'create_model',
  ({ session_id }) => ({ session_id, base_model: 'base-model', lora_config }),
  error,
];
const adam = (name: string, value: unknown): Case => [
  `${name} of ${value}`,
  'optim_step',
  ({ model_id }) => ({ model_id, adam_params: { [name]: value } }),
  new RegExp(`adam_params\\.${name}: .*(expected|Too)`),
];
const sample = (name: string, changes: object, error: RegExp): Case => [
  `sampling with ${name}`,
  'asample',
  () => ({
    base_model: 'base-model',
    prompt: { chunks: [{ type: 'encoded_text', tokens: [1, 2] }] },
    sampling_params: { max_tokens: 2 },
    ...changes,
  }),
  error,
];
const parameters = (name: string, value: unknown) =>
  sample(`${name} of ${JSON.stringify(value)?.slice(0, 30)}`, { sampling_params: { [name]: value } }, new RegExp(name));
const prompt = (tokens: unknown, error: RegExp) =>
  sample(
    `the prompt ${JSON.stringify(tokens)?.slice(0, 30)}`,
    { prompt: { chunks: [{ type: 'encoded_text', tokens }] } },
    error,
  );

const cases: readonly Case[] = [
  ...[2 ** 32 + 5, 2 ** 40, 2 ** 31, 1e300, -1, -(2 ** 32) + 5, 1.5, '3', null, [3]].flatMap((id) =>
    withId(id, /\.(tokens|data)\.\d: found .*expected a token id of 0 to/),
  ),
  ...withId(261, /datum 0: token \d is 261, expected a token id of 0 to 260/),
  ...['constructor', '__proto__', 'toString', 'hasOwnProperty', 'dro', ''].map((loss) =>
    pass(`the loss '${loss}'`, batch([honest], loss), /there is no loss_fn/),
  ),
  pass('a loss of 1e5 characters', batch([honest], 'x'.repeat(1e5)), /loss_fn: Too big/),
  pass('an unknown clip', batch([honest], 'ppo', { constructor: 1 }), /loss_fn_config has no 'constructor'/),
  pass('a clip of a text', batch([honest], 'ppo', { clip_low_threshold: '1' }), /clip_low_threshold/),
  pass('clips around 2', batch([honest], 'ppo', { clip_low_threshold: 2 }), /clip thresholds around 1/),
  pass('no datum', batch([]), /data: expected a list of 1 to 8192, found a list of 0/),
  pass(
    '10,000 datums',
    batch(new Array(10_000).fill(honest)),
    /data: expected a list of 1 to 8192, found a list of 10000/,
  ),
  pass('a million wrong datums', batch(new Array(1e6).fill(0)), /data: expected a list of 1 to 8192/),
  pass('a million wrong tokens', batch([datum(new Array(1e6).fill(0.5), [])]), /tokens\.0: found 0\.5/),
  pass('datums that are no list', batch({ length: 3 }), /data: expected a list of 1 to 8192, found an object/),
  pass('no tokens', batch([datum([], [])]), /expected at least one token/),
  pass(
    'more tokens than the context',
    batch([datum(new Array(64).fill(1), new Array(64).fill(1))]),
    /65 tokens do not fit/,
  ),
  pass('a target too few', batch([datum([1, 2], [2])]), /target_tokens has the shape \[1\], expected \[2\]/),
  pass(
    'a shape of another size',
    batch([datum([1, 2], [2, 3], { weights: { data: [1, 1], shape: [9] } })]),
    /weights has the shape \[9\]/,
  ),
  pass('weights of 1e300', batch([datum([1], [2], { weights: tensor([1e300]) })]), /weights\.data\.0: found 1e\+300/),
  pass('a weight of null', batch([datum([1], [2], { weights: tensor([null]) })]), /weights\.data\.0: found null/),
  create({ rank: 0 }, /rank: Too small/),
  create({ rank: -1 }, /rank: Too small/),
  create({ rank: 1.5 }, /rank: Invalid input: expected int, .*found 1\.5/),
  create({ rank: 17 }, /rank: expected at most 12, the largest width of the model, found 17/),
  create({ rank: 200_000 }, /rank: expected at most 12/),
  create({ rank: 2 ** 31 }, /rank: expected at most 12/),
  create({ rank: 2, alpha: 0 }, /alpha: Too small/),
  create({ rank: 2, alpha: 1e308 }, /alpha: Too big/),
  create({ rank: 2, train_attn: false, train_mlp: false }, /train_attn, of train_mlp or of both/),
  adam('learning_rate', -1),
  adam('learning_rate', '1'),
  adam('beta1', 1),
  adam('beta2', 1.5),
  adam('eps', -1),
  prompt([2 ** 32 + 5], /tokens\.0: found 4294967301/),
  prompt([1.5], /tokens\.0: found 1\.5/),
  prompt([-1], /tokens\.0: found -1/),
  prompt([261], /the prompt: token 0 is 261, expected a token id of 0 to 260/),
  prompt([], /a prompt of 0 tokens leaves no room/),
  prompt(new Array(1e5).fill(1), /a prompt of 100000 tokens leaves no room/),
  parameters('temperature', -1),
  parameters('top_p', 0),
  parameters('top_k', 2 ** 40),
  parameters('max_tokens', 0),
  parameters('stop', [2 ** 40]),
  parameters('stop', new Array(1000).fill('a')),
  parameters('key', [-1, 0]),
  sample('2,000 samples', { num_samples: 2000 }, /num_samples/),
  sample('an unknown base', { base_model: 'constructor' }, /'constructor' is not served/),
  sample('no model', { base_model: null }, /expected a sampling_session_id, a base_model or a model_path/),
  [
    'an unknown sampling session',
    'asample',
    () => ({ sampling_session_id: '__proto__', prompt: { chunks: [] }, sampling_params: {} }),
    /leaves no room/,
  ],
  ['an unknown model', 'optim_step', () => ({ model_id: '__proto__', adam_params: {} }), /Model not found/],
  [
    'an unknown session',
    'create_model',
    () => ({ session_id: 'constructor', base_model: 'base-model' }),
    /Session not found/,
  ],
  ['an unknown future', 'retrieve_future', () => ({ request_id: '__proto__' }), /Future not found/],
  [
    'a path out of the store',
    'load_weights',
    ({ model_id }) => ({ model_id, path: 'tinker://../weights/x' }),
    /expected a path like/,
  ],
];

describe('a hostile client', () => {
  it('is refused by name within a second each time, takes no memory, and disturbs no other client', async () => {
    const [calm, rough] = [clientOf(await serve('calm')), clientOf(await serve('rough'))];
    const expected = await numbersOf(calm);
    const session_id = await rough.session();
    const model_id = await rough.model(session_id);
    expect(cases.length).toBeGreaterThanOrEqual(62);
    const round = async () => {
      for (const [name, route, body, error] of cases) {
        let answer: Reply | undefined;
        const seconds = await processorSeconds(async () => {
          answer = await rough.post(route, body({ model_id, session_id }));
        });
        const { status, body: reply } = answer as unknown as Reply;
        expect({ name, status, reply }).toEqual({
          name,
          status: expect.any(Number),
          reply: { detail: expect.stringMatching(error) },
        });
        expect([400, 404, 422], name).toContain(status);
        expect(seconds, name).toBeLessThan(3);
      }
    };
    await round();
    const before = process.memoryUsage();
    for (let i = 0; i < 5; i++) await round();
    const after = process.memoryUsage();
    const grown = (what: 'external' | 'arrayBuffers') => after[what] - before[what];
    expect(Math.max(grown('external'), grown('arrayBuffers'))).toBeLessThan(50e6);
    expect(await numbersOf(rough)).toEqual(expected);
  });

  it('whose update is not finite gets its weights and its optimiser back', async () => {
    const numbers = async ({ ask, session, model }: ReturnType<typeof clientOf>, adamParams: readonly object[]) => {
      const model_id = await model(await session());
      const learn = async (adam_params: object) => {
        await ask('forward_backward', { model_id, ...batch([honest]) });
        return ask('optim_step', { model_id, adam_params });
      };
      const steps = [];
      for (const each of adamParams) steps.push(await learn(each));
      steps.push(await ask('forward_backward', { model_id, ...batch([honest]) }));
      return steps;
    };
    const client = clientOf(await serve('update'));
    const [usual, wild] = [{ learning_rate: 1e-2 }, { learning_rate: 1e38 }];
    const [first, refused, ...rest] = await numbers(client, [usual, wild, wild, usual]);
    expect(refused).toEqual({
      error: expect.stringMatching(/the update is not finite and was undone: .*learning_rate is 1e\+38/),
      category: 'user',
    });
    expect([first, ...rest.slice(1)]).toEqual(await numbers(client, [usual, usual]));
    const [, ...after] = await numbers(client, [wild, usual]); // a first update, before there are moments
    expect(after).toEqual(await numbers(client, [usual]));
  });

  it('gets no more memory than the budget, whose message names the needed and the free', async () => {
    const { post, session, model, ask } = clientOf(await serve('budget'));
    const session_id = await session();
    const create = { session_id, base_model: 'base-model', lora_config: { rank: 12 } };
    const refusals: unknown[] = [];
    const models: string[] = [];
    for (let i = 0; i < 40; i++) {
      const { status, body } = await post('create_model', create);
      if (status === 200)
        models.push(String((await post('retrieve_future', { request_id: body.request_id })).body.model_id));
      else refusals.push({ status, body });
    }
    expect(models.length).toBeGreaterThan(2);
    expect(refusals.length).toBeGreaterThan(2);
    for (const each of refusals)
      expect(each).toEqual({
        status: 400,
        body: {
          detail: expect.stringMatching(
            /an adapter of rank 12 needs [\d.]+ kB of memory, and [\d.]+ kB of 1\.0 MB are free \(--memory\)/,
          ),
        },
      });
    // Snapshots need memory too, and a model that is unloaded gives its memory back.
    for (const model_id of models.slice(0, 2)) {
      const snapshot = await ask('save_weights_for_sampler', { model_id });
      if ('error' in snapshot) expect(snapshot.error).toMatch(/a sampling session needs .* are free/);
    }
    await ask('unload_model', { model_id: models[0] });
    expect(await model(session_id, 2)).toMatch(/:train:/);
  });

  it('saves no more than the budget of the disk, also after a restart, and gets back what it removes', async () => {
    const disk = 1.2e5;
    const first = await serve('disk', disk);
    const { session, model, ask } = clientOf(first);
    const model_id = await model(await session(), 4);
    const save = (path: string) => ask('save_weights', { model_id, path });
    const full = {
      error: expect.stringMatching(/needs [\d.]+ kB of disk, and [\d.]+ kB of 120\.0 kB are free \(--disk\)/),
      category: 'user',
    };
    const bytes = () =>
      readdirSync(join(root, 'disk'), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
    const saved: string[] = [];
    for (let i = 0; i < 60; i++) {
      const answer = await save(`state-${i}`);
      if ('path' in answer) saved.push(String(answer.path));
      else expect(answer).toEqual(full);
      expect(bytes()).toBeLessThanOrEqual(disk);
    }
    expect(saved.length).toBeGreaterThan(2);
    expect(saved.length).toBeLessThan(60);
    expect(await readdir(join(root, 'disk', model_id.replaceAll(':', '-'), 'weights'))).toHaveLength(saved.length);

    const route = `training_runs/${model_id}/checkpoints/weights/state-0`;
    const remove = () =>
      fetch(`${first.url}/api/v1/${route}`, { method: 'DELETE', headers: { 'x-api-key': first.apiKey } });
    const answers = await Promise.all([remove(), remove(), remove()]);
    expect(answers.map(({ status }) => status).sort()).toEqual([204, 404, 404]);
    expect(await save('again')).toMatchObject({ path: expect.stringContaining('again') });
    expect(await save('more')).toEqual(full);

    const after = clientOf(await serve('disk', disk));
    const other = await after.model(await after.session(), 4);
    expect(await after.ask('save_weights', { model_id: other, path: 'late' })).toEqual(full);
  });
});

it('lists no weights that are removed before their description is read', async () => {
  const store = join(root, 'emptied');
  const file = join(store, 'model', 'weights', 'gone', 'served.json');
  await nodeFiles.makeDirectory(join(store, 'model', 'weights', 'gone'));
  await nodeFiles.write(file, '{}');
  const readText = () => nodeFiles.remove(file).then(() => nodeFiles.readText(file));
  expect(await new WeightsStore({ ...nodeFiles, readText }, store, MEGABYTE).list('model')).toEqual([]);
});
