import { Secret } from '@drmas/engine/host';
import { afterEach, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { stopwatch } from '../../../../../test/support/time-and-chance.js';
import { webServer } from '../../../../../test/support/web-server.js';
import { TinkerClient } from './tinker-client.js';

const timing = { request: 60, total: 60, heartbeat: 60, backOff: 0.001, retries: 3 };

it('asks a busy server again when the server wishes: a request, and a poll for its result', async () => {
  const seconds = stopwatch();
  const server = await webServer(({ path }, response) => {
    const isFirst = server.requests.filter((each) => each.path === path).length === 1;
    if (isFirst) response.writeHead(429, { 'retry-after': '1' }).end();
    else response.end(JSON.stringify({ request_id: 'one' }));
  });
  const client = new TinkerClient({ url: server.url, apiKey: undefined, timing });
  await client.finish('forward', {}, z.unknown());
  expect(seconds()).toBeGreaterThan(1.98);
  client.close();
});

it('waits for a busy server no longer than its deadline, whatever the server asks', async () => {
  const seconds = stopwatch();
  const server = await webServer((_, response) => void response.writeHead(429, { 'retry-after': '100' }).end());
  const client = new TinkerClient({ url: server.url, apiKey: undefined, timing: { ...timing, total: 1 } });
  await expect(client.ask('forward', {}, z.unknown())).rejects.toThrow('not answered within 1 s');
  expect(seconds()).toBeLessThan(4);
  client.close();
});

afterEach(() => void vi.unstubAllGlobals());

/** The id of an accepted request, or the kind of its failure. */
const outcomeOf = (submitted: ReturnType<TinkerClient['submit']>): Promise<string> =>
  submitted.then(
    ({ id }) => id,
    ({ kind }) => kind,
  );

it.each([
  ['ECONNREFUSED', 'one'],
  ['EAI_AGAIN', 'one'],
  ['ENOTFOUND', 'one'],
  ['UND_ERR_CONNECT_TIMEOUT', 'one'],
  ['ECONNRESET', 'unreachable'], // it may have arrived
])('a request that must not run twice: after %s, %s', async (code, outcome) => {
  const server = await webServer((_, response) => void response.end(JSON.stringify({ request_id: 'one' })));
  const { fetch } = globalThis;
  let failures = 1;
  const failing: typeof fetch = async (...request) => {
    if (failures-- > 0) throw new TypeError('fetch failed', { cause: Object.assign(new Error(code), { code }) });
    return fetch(...request);
  };
  vi.stubGlobal('fetch', failing);
  const client = new TinkerClient({ url: server.url, apiKey: undefined, timing });
  expect(await outcomeOf(client.submit('optim_step', {}, { repeatable: false }))).toBe(outcome);
  expect(server.requests).toHaveLength(outcome === 'one' ? 1 : 0);
  client.close();
});

it.each([
  [true, 3, 'one'],
  [true, 4, 'failed'],
  [false, 1, 'failed'],
])(
  'repeats a request after server errors if it is harmless (%s), at most three times: %d, %s',
  async (repeatable, errors, outcome) => {
    const server = await webServer((_, response) => {
      if (server.requests.length <= errors) response.writeHead(500).end('{"error":"Internal Server Error"}');
      else response.end(JSON.stringify({ request_id: 'one' }));
    });
    const client = new TinkerClient({ url: server.url, apiKey: undefined, timing: { ...timing, retries: 7 } });
    expect(await outcomeOf(client.submit('asample', {}, { repeatable }))).toBe(outcome);
    expect(server.requests).toHaveLength(Math.min(errors, repeatable ? 3 : 0) + 1);
    client.close();
  },
);

it.each([
  [425, 'one'],
  [529, 'one'],
  [522, 'unreachable'], // a proxy may have passed it on
  [524, 'unreachable'],
])('a request that must not run twice: after the status %d, %s', async (status, outcome) => {
  const server = await webServer((_, response) => {
    if (server.requests.length === 1) response.writeHead(status).end('<html></html>');
    else response.end(JSON.stringify({ request_id: 'one' }));
  });
  const client = new TinkerClient({ url: server.url, apiKey: undefined, timing });
  expect(await outcomeOf(client.submit('optim_step', {}, { repeatable: false }))).toBe(outcome);
  client.close();
});

it('refuses at once a key that no header can hold', async () => {
  const { url, requests } = await webServer((_, response) => void response.end('{}'));
  const client = new TinkerClient({ url, apiKey: new Secret('“sk-abcdefgh”'), timing: { ...timing, backOff: 30 } });
  await expect(client.ask('forward', {}, z.unknown())).rejects.toThrow('forward: the request cannot be sent');
  expect(requests).toEqual([]);
  client.close();
});
