import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { redirecting, webServer } from '../../../../../test/support/web-server.js';
import { AnswerError } from '../core/errors.js';
import { Secret } from '../core/secret.js';
import { LONGEST_RETRY_AFTER_MS, retryAfterMs, type WebRequest, webRequest } from './web-request.js';

const limits = { signal: new AbortController().signal, mostBytes: 1000 };
const post: WebRequest = { ...limits, method: 'POST', headers: { 'x-api-key': 'tml-secret' }, body: 'a prompt' };

describe('a redirect to another origin', () => {
  it.each([301, 302, 303, 307, 308])('%i is refused by name, and brings it neither key nor prompt', async (status) => {
    const other = await webServer((_, response) => void response.end('caught'));
    const server = await redirecting(status, other.url);
    for (const request of [post, { ...post, method: 'GET', body: null }]) {
      const refusal = webRequest(`${server.url}/ask`, request);
      await expect(refusal).rejects.toThrow(AnswerError);
      await expect(refusal).rejects.toThrow(`${status}: the server redirects requests to ${other.url}`);
    }
    expect(other.requests).toEqual([]);
  });

  it('is followed without any header if the caller allows it, and only then', async () => {
    const other = await webServer((_, response) => void response.end('an archive'));
    const server = await redirecting(302, other.url);
    const get: WebRequest = { ...limits, headers: { 'x-api-key': 'tml-secret' }, elsewhere: 'without-headers' };
    expect((await webRequest(`${server.url}/archive`, get)).text()).toBe('an archive');
    expect(server.requests[0]?.headers['x-api-key']).toBe('tml-secret');
    expect(other.requests.map(({ headers }) => headers['x-api-key'])).toEqual([undefined]);
  });
});

describe('a redirect within the origin', () => {
  it.each([307, 308])('%i is followed with method, key and body', async (status) => {
    const server = await webServer(({ path, headers, method, body }, response) => {
      if (path === '/ask') response.writeHead(status, { location: '/ask/' }).end();
      else response.end([method, headers['x-api-key'], body].join());
    });
    expect((await webRequest(`${server.url}/ask`, post)).text()).toBe('POST,tml-secret,a prompt');
  });

  it.each([301, 302, 303])('%i of a POST would lose its body, and is refused', async (status) => {
    const server = await webServer(
      ({ path }, response) => void response.writeHead(path === '/ask' ? status : 200, { location: '/ask/' }).end(),
    );
    await expect(webRequest(`${server.url}/ask`, post)).rejects.toThrow(/redirects a POST to \/ask\//);
  });

  it('that never ends is ended after five', async () => {
    const server = await webServer((_, response) => void response.writeHead(307, { location: '/again' }).end());
    await expect(webRequest(server.url, post)).rejects.toThrow(/more than 5 times/);
    expect(server.requests).toHaveLength(6);
  });

  it.each([undefined, 'http://[', 'file:///etc/passwd'])('to %s leads nowhere', async (location) => {
    const server = await webServer(
      (_, response) => void response.writeHead(307, location === undefined ? {} : { location }).end(),
    );
    await expect(webRequest(server.url, post)).rejects.toThrow(AnswerError);
  });
});

describe('an answer that is too long', () => {
  it('is not read to its end', async () => {
    let written = 0;
    const server = await webServer((_, response) => {
      const more = () => {
        while (!response.destroyed && response.write(Buffer.alloc(10_000))) written += 10_000;
      };
      response.on('drain', more);
      more();
    });
    await expect(webRequest(server.url, limits)).rejects.toThrow(/longer than 1.0 kB/);
    expect(written).toBeLessThan(1e8);
  });

  it('after its decompression counts as that long', async () => {
    const bomb = gzipSync(Buffer.alloc(1e7));
    expect(bomb.length).toBeLessThan(20_000);
    const server = await webServer(
      (_, response) => void response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb),
    );
    await expect(webRequest(server.url, { ...limits, mostBytes: 1e6 })).rejects.toThrow(/longer than 1.0 MB/);
    expect((await webRequest(server.url, { ...limits, mostBytes: 1e7 })).bytes).toHaveLength(1e7);
  });
});

describe('a deadline', () => {
  it('holds in the middle of a compressed body, one request after the other', async () => {
    const bomb = gzipSync(Buffer.alloc(80e6, ' '));
    const server = await webServer(
      (_, response) => void response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb),
    );
    const late = () => webRequest(server.url, { ...limits, mostBytes: 1e9, timeoutMs: 20 });
    for (let i = 0; i < 5; i++) await expect(late()).rejects.toThrow('no answer within 20 ms');
  });

  it("holds for a silent server with any number of waiting requests, and so does the caller's signal", async () => {
    const server = await webServer(() => {});
    const controller = new AbortController();
    const warnings: Error[] = [];
    const warned = (warning: Error) => warnings.push(warning);
    process.on('warning', warned);
    const waiting = Array.from({ length: 30 }, () =>
      webRequest(server.url, { ...limits, signal: controller.signal, timeoutMs: 60_000 }),
    );
    await expect(webRequest(server.url, { ...limits, timeoutMs: 20 })).rejects.toThrow('no answer within 20 ms');
    controller.abort(new Error('the episode is over'));
    for (const each of waiting) await expect(each).rejects.toThrow('the episode is over');
    process.off('warning', warned);
    expect(warnings).toEqual([]);
  });
});

it('has no other deadline than its own: Node would wait 300 s for the head and for each piece of the body', async () => {
  type Dispatcher = { dispatch(options: object, handler: unknown): boolean };
  const kept = globalThis as unknown as Record<symbol, Dispatcher | undefined>;
  const server = await webServer((_, response) => void response.end('an answer'));
  await (await fetch(server.url)).text(); // Node loads its library at the first call
  const places = [1, 2].map((version) => Symbol.for(`undici.globalDispatcher.${version}`));
  const before = places.flatMap((place) => (kept[place] === undefined ? [] : [[place, kept[place]] as const]));
  const dispatched: object[] = [];
  for (const [place, dispatcher] of before)
    kept[place] = {
      dispatch: (options, handler) => dispatched.push(options) > 0 && dispatcher.dispatch(options, handler),
    };
  try {
    expect((await webRequest(server.url, { ...post, timeoutMs: 1e6 })).text()).toBe('an answer');
  } finally {
    for (const [place, dispatcher] of before) kept[place] = dispatcher;
  }
  expect(dispatched).toEqual([expect.objectContaining({ method: 'POST', headersTimeout: 0, bodyTimeout: 0 })]);
});

it('masks the secret in all texts of the server, also if a redirect would show it', async () => {
  const secret = new Secret('tml-secret');
  const echo = await webServer(
    ({ headers }, response) => void response.writeHead(500).end(`{"${headers['x-api-key']}"`),
  );
  expect((await webRequest(echo.url, { ...post, secret })).text()).toBe('{"[secret]"');
  const sending = await redirecting(307, 'http://tml-secret.example');
  await expect(webRequest(sending.url, { ...post, secret })).rejects.toThrow('http://[secret].example');
});

const NOW = Date.parse('2026-11-22T10:00:00Z');
const waitOf = (headers: Record<string, string>) => retryAfterMs(new Headers(headers), NOW);

it('waits before a retry for a time that a timer can wait for, whatever the server asks', () => {
  const numbers = fc.oneof(fc.double(), fc.integer(), fc.maxSafeInteger(), fc.constantFrom(1e9, 1e308, -1, Infinity));
  fc.assert(
    fc.property(numbers, fc.constantFrom('retry-after', 'retry-after-ms'), (value, name) => {
      const wait = waitOf({ [name]: String(value) });
      if (Number.isNaN(value)) expect(wait).toBeUndefined();
      else {
        expect(wait).toBeGreaterThanOrEqual(1);
        expect(wait).toBeLessThanOrEqual(LONGEST_RETRY_AFTER_MS);
      }
    }),
  );
});

it.each<[Record<string, string>, number | undefined]>([
  [{ 'retry-after': '7' }, 7000],
  [{ 'retry-after': '1000000000' }, 120000],
  [{ 'retry-after': 'Sun, 22 Nov 2026 10:00:05 GMT' }, 5000],
  [{ 'retry-after': 'Sun, 22 Nov 2096 10:00:05 GMT' }, 120000],
  [{ 'retry-after': 'Sun, 22 Nov 1996 10:00:05 GMT' }, 1],
  // The server's clock is an hour behind this machine's, or ahead.
  [{ 'retry-after': 'Sun, 22 Nov 2026 09:00:05 GMT', date: 'Sun, 22 Nov 2026 09:00:00 GMT' }, 5000],
  [{ 'retry-after': 'Sun, 22 Nov 2026 11:00:05 GMT', date: 'Sun, 22 Nov 2026 11:00:00 GMT' }, 5000],
  [{ 'retry-after': 'Sun, 22 Nov 2026 10:00:05 GMT', date: 'today' }, 5000],
  [{ 'retry-after': '2026-11-22T10:00:05Z' }, 5000],
  [{ 'retry-after': 'soon' }, undefined],
  [{ 'retry-after-ms': '20', 'retry-after': '7' }, 20],
  [{ ratelimit: '"api";r=0;t=55', 'ratelimit-policy': '"fixed window";"api";q=500;w=300' }, 55000],
  [{ ratelimit: '"pages";r=7;t=9, "api"; t=55; r=0' }, 55000],
  [{ ratelimit: '"api";r=0;t=299' }, 120000],
  [{ ratelimit: '"api";r=3;t=55' }, undefined],
  [{ ratelimit: '"api";r=0;t=55', 'retry-after': '7' }, 7000],
  [{}, undefined],
])('reads %j as a wait of %s ms', (headers, expected) => {
  expect(waitOf(headers)).toBe(expected);
});
