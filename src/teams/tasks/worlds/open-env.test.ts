/** A server that speaks OpenEnv's protocol as a test wants. Its messages are those of openenv 0.10's own server. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { WorldError } from '@drmas/engine/errors';
import { afterEach, describe, expect, it } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import { eventually } from '../../../../test/support/time-and-chance.js';
import { openEnv } from './open-env.js';

const servers = new Set<{ server: Server; sockets: WebSocketServer }>();
afterEach(() => {
  for (const { server, sockets } of servers) {
    for (const socket of sockets.clients) socket.terminate();
    server.closeAllConnections();
    server.close();
  }
  servers.clear();
});

const text = { title: 'Text', description: 'It', maxLength: 9, type: 'string' };
const metadata = { additionalProperties: true, type: 'object' };
const actionSchema = { title: 'Text', type: 'object', properties: { metadata, text }, required: ['text'] };
const anyObject = { type: 'object' };

type Message = { type: string; data: Record<string, unknown> };
interface Script {
  /** The answer to a message; undefined: none. A function ends the session. */
  readonly answer: (message: Message, session: number) => object | string | undefined | 'end';
  readonly sessions?: number;
  readonly routes?: Readonly<Record<string, (body: Record<string, unknown>) => unknown>>;
  readonly action?: object;
}

async function environment({ answer, sessions = 9, routes = {}, action = actionSchema }: Script) {
  const seen: Message[] = [];
  let open = 0;
  let most = 0;
  let count = 0;
  const known: NonNullable<Script['routes']> = {
    '/schema': () => ({ action, observation: anyObject, state: anyObject }),
    ...routes,
  };
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const part of request) body += part;
    const route = known[request.url ?? ''];
    if (route === undefined) return void response.writeHead(404).end('{"detail":"Not Found"}');
    response.end(JSON.stringify(route(body === '' ? {} : JSON.parse(body))));
  });
  const sockets = new WebSocketServer({ server, path: '/ws' });
  sockets.on('connection', (socket: WebSocket) => {
    if (open >= sessions) {
      const data = { message: 'full', code: 'CAPACITY_REACHED', active_sessions: open, max_sessions: sessions };
      socket.send(JSON.stringify({ type: 'error', data }));
      return socket.close();
    }
    const session = count++;
    most = Math.max(most, ++open);
    socket.on('close', () => open--);
    socket.on('message', (raw) => {
      const message: Message = JSON.parse(String(raw));
      seen.push(message);
      if (message.type === 'close') return socket.close();
      const reply = answer(message, session);
      if (reply === 'end') return socket.terminate();
      if (reply !== undefined) socket.send(typeof reply === 'string' ? reply : JSON.stringify(reply));
    });
  });
  servers.add({ server, sockets });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, seen, used: () => ({ open, most, count }) };
}

const observed = (observation: object, reward: unknown = null, done = false) => ({
  type: 'observation',
  data: { observation, reward, done },
});
const error = (code: string, more: object = {}) => ({ type: 'error', data: { message: 'no', code, ...more } });
const refusal = (code: string) => expect.objectContaining({ name: 'WorldError', code });

/** An episode's signal, and the function that ends the episode. */
function episode(seed = 0) {
  const controller = new AbortController();
  return { of: { task: { seed }, signal: controller.signal }, end: () => controller.abort(new Error('over')) };
}

describe('a world', () => {
  it('is reset, stepped, asked and closed, and sums its rewards', async () => {
    const { url, seen, used } = await environment({
      answer: ({ type, data }) => {
        if (type === 'state') return { type: 'state', data: { step_count: 2 } };
        if (type === 'reset') return observed({ text: `seed ${data.seed}`, metadata: {} });
        return observed({ text: '' }, data.text === 'b' ? true : 0.5, data.text === 'b');
      },
    });
    const { of, end } = episode(7);
    const world = await openEnv({ url: `${url}/`, reset: { game: 'chess' } }).open(of);
    expect(world.observation.text).toBe('seed 7');
    expect(world.tools).toEqual([
      {
        name: 'step',
        parameters: { title: 'Text', type: 'object', properties: { text }, required: ['text'] },
      },
    ]);
    expect(await world.step({ text: 'a' })).toEqual({ observation: { text: '' }, reward: 0.5, done: false });
    await world.call({ name: 'step', arguments: '{"text":"b"}' });
    expect(world).toMatchObject({ done: true, reward: 1, total: 1.5, steps: 2 });
    expect(await world.state()).toEqual({ step_count: 2 });
    end();
    await eventually(() => used().open === 0);
    expect(seen.map(({ type, data }) => [type, data])).toEqual([
      ['reset', { game: 'chess', seed: 7 }],
      ['step', { text: 'a' }],
      ['step', { text: 'b' }],
      ['state', undefined],
      ['close', undefined],
    ]);
    await expect(world.step({ text: 'c' })).rejects.toEqual(refusal('CLOSED'));
  });

  it('answers concurrent steps in their order', async () => {
    const { url } = await environment({ answer: ({ data }) => observed({ text: data.text ?? '' }) });
    const world = await openEnv({ url }).open(episode().of);
    const texts = await Promise.all(['a', 'b', 'c'].map((text) => world.step({ text })));
    expect(texts.map(({ observation }) => observation.text)).toEqual(['a', 'b', 'c']);
  });

  it('goes on after VALIDATION_ERROR and EXECUTION_ERROR, whose code and details its errors have', async () => {
    const { url } = await environment({
      answer: ({ data }) => (data.text === undefined ? observed({}) : error(String(data.text), { errors: ['at x'] })),
    });
    const world = await openEnv({ url }).open(episode().of);
    for (const code of ['VALIDATION_ERROR', 'EXECUTION_ERROR', 'UNKNOWN_TYPE', 'INVALID_JSON']) {
      const thrown = await world.step({ text: code }).catch((thrown: unknown) => thrown);
      expect(thrown).toEqual(refusal(code));
      expect(String(thrown)).toMatch(/no: \["at x"\] \([A-Z_]+\)$/);
    }
    await expect(world.call({ name: 'jump', arguments: '{}' })).rejects.toThrow("no tool 'jump', only 'step'");
    for (const text of ['{"text":', '3', '['.repeat(1e5)])
      await expect(world.call({ name: 'step', arguments: text })).rejects.toEqual(refusal('VALIDATION_ERROR'));
    expect((await world.step({})).done).toBe(false);
  });

  it.each([
    ['FACTORY_ERROR', error('FACTORY_ERROR')],
    ['SESSION_ERROR', error('SESSION_ERROR')],
    ['BAD_ANSWER', 'hello'],
    ['BAD_ANSWER', { type: 'observation', data: {} }],
    ['BAD_ANSWER', { type: 'state', data: {} }],
    ['CLOSED', 'end'],
    ['TIMEOUT', undefined],
  ])('ends with %s, and stays ended', async (code, last) => {
    const { url, used } = await environment({ answer: ({ type }) => (type === 'reset' ? observed({}) : last) });
    const { of, end } = episode();
    const world = await openEnv({ url, timeoutMs: code === 'TIMEOUT' ? 1000 : 60_000 }).open(of);
    await expect(world.step({ text: 'a' })).rejects.toEqual(refusal(code));
    await expect(world.step({ text: 'a' })).rejects.toBeInstanceOf(WorldError);
    end();
    await eventually(() => used().open === 0);
  });

  it('is refused by name if no server listens', async () => {
    const game = openEnv({ url: 'http://127.0.0.1:9' });
    await expect(game.load('train')).rejects.toEqual(refusal('UNREACHABLE'));
    await expect(game.open(episode().of)).rejects.toEqual(refusal('UNREACHABLE'));
    expect(() => openEnv({ url: 'ws://there' })).toThrow('openEnv: url');
  });

  it('has the tools of an MCP environment, whose calls are steps', async () => {
    const action = { title: 'CallToolAction', type: 'object' };
    const inputSchema = { type: 'object', properties: { of: { type: 'string' } } };
    const result = (value: unknown) => ({ tool_name: 'price', metadata: {}, error: null, result: value });
    const results = [
      result({ data: 5, content: [] }),
      result({ data: null, content: [{ type: 'text', text: 'five' }] }),
      result({
        content: [
          { type: 'resource', resource: { text: '# A' } },
          { type: 'image', data: 'AAAA' },
        ],
      }),
      { ...result(null), error: { error_type: 'tool_not_found', message: 'no such tool' } },
    ];
    const { url, seen } = await environment({
      action,
      answer: ({ type, data }) => {
        if (type === 'mcp')
          return { type: 'mcp', data: { id: 1, result: { tools: [{ name: 'price', inputSchema }] } } };
        return type === 'reset' ? observed({}) : observed(results.shift() ?? {}, data.tool_name === 'x' ? 0 : 1);
      },
    });
    const world = await openEnv({ url }).open(episode().of);
    expect(world.tools).toEqual([{ name: 'price', parameters: inputSchema }]);
    const call = { name: 'price', arguments: '{"of":"fig"}' };
    const texts = [await world.call(call), await world.call(call), await world.call(call), await world.call(call)];
    expect(texts).toEqual(['5', 'five', '# A\n[image]', 'error: no such tool']);
    expect(seen.at(-1)?.data).toEqual({ type: 'call_tool', tool_name: 'price', arguments: { of: 'fig' } });
    expect(world.total).toBe(4);
  });
});

describe('a server with few sessions', () => {
  it('plays more episodes than it has sessions, one after another, and none fails', async () => {
    const { url, used } = await environment({ sessions: 2, answer: () => observed({}, 1, true) });
    const game = openEnv({ url });
    const play = async (seed: number) => {
      const { of, end } = episode(seed);
      const world = await game.open(of);
      await world.step({ text: 'a' });
      end();
      return world.total;
    };
    expect(await Promise.all(Array.from({ length: 12 }, (_, seed) => play(seed)))).toEqual(Array(12).fill(1));
    expect(used()).toMatchObject({ most: 2, count: 12 });
  });

  it('gives an episode that is over while it waits its own end, and no session', async () => {
    const { url, used } = await environment({ sessions: 1, answer: () => observed({}) });
    const game = openEnv({ url, concurrency: 1 });
    const first = episode();
    await game.open(first.of);
    const second = episode(1);
    const waiting = game.open(second.of);
    second.end();
    await expect(waiting).rejects.toThrow('over');
    first.end();
    await game.open(episode(2).of);
    expect(used().count).toBe(2);
  });
});

describe('tasks', () => {
  it('are seeds if the environment lists none: even ones for training, odd ones for tests', async () => {
    const { url } = await environment({ answer: () => observed({}) });
    const game = openEnv({ url, tasks: 3 });
    const sets = [await game.load('train'), await game.load('test')];
    expect(sets.map(({ size }) => size)).toEqual([3, 3]);
    expect(sets.map((set) => [0, 1, 2].map((i) => game.task.parse(set.at(i).data).seed))).toEqual([
      [0, 2, 4],
      [1, 3, 5],
    ]);
  });

  it('come from the routes of an environment that lists them, by the type of its splits', async () => {
    const routes = {
      '/list_environments': () => ['sums'],
      '/sums/splits': () => [
        { name: 'easy', type: 'train' },
        { name: 'eval', type: 'validation' },
      ],
      '/sums/num_tasks': ({ split }: Record<string, unknown>) => ({ num_tasks: split === 'easy' ? 20 : 4 }),
    };
    const { url, seen } = await environment({ routes, answer: () => observed({}) });
    const game = openEnv({ url });
    expect(await game.load('train')).toMatchObject({ name: 'sums easy', size: 20 });
    const test = await game.load('test');
    expect([test.size, test.at(3)]).toEqual([4, { id: 'eval 3', data: { seed: 3, split: 'eval', index: 3 } }]);
    await game.open({ task: test.at(3).data, signal: episode().of.signal });
    expect(seen[0]).toEqual({ type: 'reset', data: { seed: 3, split: 'eval', index: 3 } });
    await expect(openEnv({ url, splits: { test: 'hard' } }).load('test')).rejects.toThrow(
      `no split "hard", only easy, eval; openEnv({ splits: { test: NAME } }) names one`,
    );
  });

  it('come from a split that is named, if the environment gives its splits no type', async () => {
    const routes = {
      '/list_environments': () => ['harbor_env'],
      '/harbor_env/splits': () => [{ name: 'terminal/tasks', num_tasks: 2 }],
      '/harbor_env/num_tasks': () => ({ num_tasks: 2 }),
    };
    const { url } = await environment({ routes, answer: () => observed({}) });
    await expect(openEnv({ url }).load('train')).rejects.toThrow('no split "train", only terminal/tasks;');
    const named = await openEnv({ url, splits: { train: 'terminal/tasks' } }).load('train');
    expect([named.size, named.at(1).data]).toEqual([2, { seed: 1, split: 'terminal/tasks', index: 1 }]);
  });
});

it('gives the schemas as the server has them, with a check', async () => {
  const { url } = await environment({ answer: () => observed({}) });
  const { action, state } = await openEnv({ url }).schemas();
  expect(action.fits({ text: 'short' })).toBe(true);
  expect(action.fits({ text: 'far too long' })).toBe(false);
  expect(state.fits({ any: 1 })).toBe(true);
});

it.each<[object, unknown, unknown]>([
  [{ type: 'object', required: ['answer'] }, { answer: 1 }, {}],
  [
    {
      properties: {
        p: {
          enum: [
            [0, 0],
            [0, 1],
          ],
        },
      },
    },
    { p: [0, 1] },
    { p: 0 },
  ],
  [{ properties: { p: { const: { a: [1] } } } }, { p: { a: [1] } }, { p: { a: [2] } }],
  [{ definitions: { x: { type: 'string' } }, properties: { a: { $ref: '#/definitions/x' } } }, { a: 'x' }, { a: 1 }],
  [{ properties: { id: { type: 'integer' } } }, { id: 2 ** 60 }, { id: 1.5 }],
  [{ not: { type: 'object' } }, [], {}],
  [{ patternProperties: { '^a': { type: 'integer' } }, additionalProperties: false }, { ab: 1 }, { b: 1 }],
])('neither changes nor misreads the schema %j', async (schema, right, wrong) => {
  const { url } = await environment({ answer: () => observed({}), action: schema });
  const { action } = await openEnv({ url }).schemas();
  expect(action.schema).toEqual(schema);
  expect([action.fits(right), action.fits(wrong)]).toEqual([true, false]);
});
