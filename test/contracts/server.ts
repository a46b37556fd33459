/**
 * The requests that every server of drmas refuses. They come from web pages, strangers, and clients that break HTTP's
 * rules.
 */
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Listening } from '@drmas/engine/internal/base/platform/servers/listen';
import { type GuardedApp, listen } from '@drmas/engine/platform';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it, type TestOptions } from 'vitest';
import { repeatedly } from '../support/time-and-chance.js';

export interface TestedServer extends GuardedApp {
  /** Requests that a client makes; only whether they reach the app matters. */
  readonly get: string;
  readonly post: string;
  /** The key that clients send. Without one the server is for programs of this machine. */
  readonly key?: string;
  /** Whether the guard itself knows the key, or the app does. */
  readonly checks?: 'app';
  /** Whether a browser may bring the key in the address of the first page. */
  readonly entrance?: true;
  /** The most bytes of a body. */
  readonly mostBytes: number;
}

interface Sent {
  readonly method?: string;
  readonly target?: string;
  /** Headers by name; undefined leaves one out that is sent otherwise. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body?: string;
}

interface Reply {
  /** 0 if the server closed the connection without an answer. */
  readonly status: number;
  readonly text: string;
}

const EVIL = 'http://evil.example';
const FORMS = [
  'text/plain',
  'text/plain;charset=UTF-8',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
];

/** @param slow The options of the tests that take long */
export function serverContract(name: string, open: () => Promise<TestedServer>, slow: TestOptions): void {
  describe(`${name} refuses`, () => {
    let server: TestedServer;
    const listening: Listening[] = [];
    let [port, hurriedPort] = [0, 0];
    let reached = 0;
    beforeAll(async () => {
      server = await open();
      const fetch: GuardedApp['app']['fetch'] = (request, ...rest) => {
        reached++;
        return server.app.fetch(request, ...rest);
      };
      const guarded = { guard: server.guard, app: { fetch } };
      const address = { host: '127.0.0.1', port: 0 };
      const deadlines = { headMs: 300, bodyMs: 300, bodyMsPerKilobyte: 10, checkMs: 20 };
      listening.push(await listen(guarded, address), await listen(guarded, { ...address, deadlines }));
      [port, hurriedPort] = listening.map(({ url }) => Number(new URL(url).port)) as [number, number];
    });
    afterAll(() => Promise.all(listening.map((each) => each.close())));

    /** Sends these bytes, and returns the answer until the server closes the connection. */
    async function raw(bytes: string, to = port): Promise<Reply> {
      const socket = connect(to, '127.0.0.1');
      socket.on('error', () => {});
      socket.write(bytes);
      const answer = await text(socket).catch(() => '');
      return { status: Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0), text: answer };
    }
    function send(
      { method = 'POST', target, headers = {}, body = method === 'POST' ? '{}' : '' }: Sent,
      to = port,
    ): Promise<Reply> {
      const all = {
        host: `127.0.0.1:${to}`,
        connection: 'close',
        ...(server.key === undefined ? {} : { authorization: `Bearer ${server.key}` }),
        ...(method === 'POST' ? { 'content-type': 'application/json', 'content-length': `${body.length}` } : {}),
        ...headers,
      };
      const lines = Object.entries(all).flatMap(([key, value]) => (value === undefined ? [] : [`${key}: ${value}`]));
      const path = target ?? (method === 'POST' ? server.post : server.get);
      return raw(`${[`${method} ${path} HTTP/1.1`, ...lines].join('\r\n')}\r\n\r\n${body}`, to);
    }
    async function refused(sent: Sent, statuses: readonly number[] = [401, 403, 415]): Promise<void> {
      const before = reached;
      const { status, text: answer } = await send(sent);
      expect({ sent, status }).toEqual({ sent, status: expect.toSatisfy((one) => statuses.includes(one)) });
      expect(answer).not.toMatch(/access-control-allow/i);
      if (server.key !== undefined) expect(answer).not.toContain(server.key);
      if (server.checks !== 'app') expect(reached - before).toBe(0);
    }
    async function passes(sent: Sent): Promise<void> {
      const before = reached;
      const { status } = await send(sent);
      expect({ sent, reached: reached - before }).toEqual({ sent, reached: 1 });
      expect([401, 403, 408, 413, 415]).not.toContain(status);
    }
    const origin = (value: string, more: Sent['headers'] = {}): Sent => ({ headers: { origin: value, ...more } });

    it('none of the requests of its own clients', async () => {
      for (const method of ['GET', 'POST']) {
        await passes({ method });
        await passes({ method, headers: { host: `localhost:${port}`, origin: `http://localhost:${port}` } });
        await passes({ method, headers: { host: `[::1]:${port}`, 'sec-fetch-site': 'same-origin' } });
        await passes({ method, headers: { 'sec-fetch-site': 'none' } });
      }
      await passes({ headers: { 'content-type': 'Application/JSON; charset=utf-8' } });
      await passes({ method: 'HEAD' });
      await passes({ method: 'GET', headers: { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' } });
    });

    it('pages of other origins', async () => {
      const origins = [EVIL, 'https://evil.example', 'http://localhost:1', `http://localhost.evil.example:${port}`];
      for (const each of [...origins, `http://evil.example:${port}`, 'null', 'x', '', 'file://'])
        for (const method of ['GET', 'POST', 'DELETE']) await refused({ ...origin(each), method });
      for (const site of ['cross-site', 'same-site', 'x']) {
        await refused({ headers: { 'sec-fetch-site': site } });
        await refused({ headers: { 'sec-fetch-site': site, 'sec-fetch-mode': 'navigate' } });
        await refused({ method: 'GET', headers: { 'sec-fetch-site': site, 'sec-fetch-mode': 'no-cors' } });
      }
      const preflight = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type' };
      await refused({ ...origin(EVIL, preflight), method: 'OPTIONS' });
      for (const type of FORMS) await refused(origin(EVIL, { 'content-type': type }));
    });

    it('hosts that are no names', async () => {
      for (const host of ['xn--localhost', 'xn--a.b', '256.1.1.1', '1.2.3.4.5', '[', 'a b', '\u00df', '%'])
        for (const method of ['GET', 'POST']) await refused({ method, headers: { host } }, [400, 403]);
    });

    it('names of other machines that lead to this one, unless a secret is sent', async () => {
      const keyless: Sent['headers'] = { authorization: undefined };
      for (const host of [
        ...['evil.example', `evil.example:${port}`, `127.0.0.1.evil.example:${port}`, `localhost.evil.example:${port}`],
        ...[`0.0.0.0:${port}`, `192.168.1.7:${port}`, `[fe80::1]:${port}`, `localhost.:${port}`],
      ]) {
        for (const method of ['GET', 'POST']) await refused({ method, headers: { host, ...keyless } });
        await refused({ headers: { host, origin: `http://${host}`, 'sec-fetch-site': 'same-origin', ...keyless } });
      }
      await refused({ target: `${EVIL}${server.post}`, headers: keyless });
      await refused({
        target: `http://localhost:${port}${server.post}`,
        headers: { host: 'evil.example', ...keyless },
      });
    });

    it('forms and texts of pages that need no leave to send them', async () => {
      for (const type of [...FORMS, undefined, '', 'application/jsonp', 'text/plain, application/json'])
        await refused({ headers: { 'content-type': type, authorization: undefined } });
    });

    it('everybody without its secret', async () => {
      const key = server.key ?? 'a-secret-that-is-none';
      if (server.key === undefined) return passes({ headers: { authorization: 'Bearer anything' } });
      const wrong = [
        undefined,
        '',
        'Bearer',
        'Bearer ',
        `Bearer ${key}x`,
        `Bearer ${key.slice(0, -1)}`,
        'Bearer wrong',
      ];
      for (const authorization of [...wrong, `Basic ${Buffer.from(`:${key}`).toString('base64')}`, `Digest ${key}`])
        for (const method of ['GET', 'POST']) await refused({ method, headers: { authorization } }, [401]);
      await refused({ headers: { authorization: undefined, 'x-api-key': `${key} ${key}` } }, [401]);
      const none = { authorization: undefined, cookie: `token=${key}; key=${key}` };
      for (const name of ['token', 'key', 'api_key', 'access_token'])
        for (const method of ['GET', 'POST']) {
          const path = method === 'GET' ? server.get : server.post;
          await refused({ method, target: `${path}?${name}=${key}`, headers: none }, [401]);
        }
      await passes({ headers: { authorization: undefined, 'x-api-key': key } });
      if (server.entrance === undefined)
        await refused({ method: 'GET', target: `/?token=${key}`, headers: none }, [401, 404]);
    });

    it('requests that are no HTTP, or that two readers would read differently', async () => {
      const host = `Host: 127.0.0.1:${port}`;
      const key = `Authorization: Bearer ${server.key}\r\nContent-Type: application/json\r\nConnection: close`;
      const head = `POST ${server.post} HTTP/1.1\r\n${host}\r\n${key}\r\n`;
      const smuggled = `0\r\n\r\nGET ${server.get} HTTP/1.1\r\n${host}\r\n\r\n`;
      for (const bytes of [
        `${head}Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n${smuggled}`,
        `${head}Transfer-Encoding: xchunked\r\nContent-Length: 4\r\n\r\n${smuggled}`,
        `${head}Transfer-Encoding: chunked, identity\r\n\r\n${smuggled}`,
        `${head}Transfer-Encoding : chunked\r\n\r\n${smuggled}`,
        `${head}Content-Length: 2\r\nContent-Length: 40\r\n\r\n{}`,
        `${head}Content-Length: +2\r\n\r\n{}`,
        `${head}Content-Length: -2\r\n\r\n{}`,
        `${head}Content-Length: 2 2\r\n\r\n{}`,
        `${head}X: a\0b\r\nContent-Length: 2\r\n\r\n{}`,
        `${head} folded: x\r\nContent-Length: 2\r\n\r\n{}`,
        `${head}X: ${'x'.repeat(20_000)}\r\n\r\n`,
        `${head}Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}\r\n0\r\n\r\n`,
        `POST ${server.post} HTTP/1.1\r\n${key}\r\nContent-Length: 2\r\n\r\n{}`,
        `POST ${server.post} HTTP/1.1\r\nHost: a b\r\n${key}\r\nContent-Length: 2\r\n\r\n{}`,
        `POST ${server.post} HTTP/1.1\r\nHost: localhost@evil.example\r\n${key}\r\nContent-Length: 2\r\n\r\n{}`,
        `POST ${server.post} HTTP/3.7\r\n${host}\r\n${key}\r\nContent-Length: 2\r\n\r\n{}`,
        `P()ST ${server.post} HTTP/1.1\r\n${host}\r\n\r\n`,
        `CONNECT evil.example:80 HTTP/1.1\r\n${host}\r\n\r\n`,
        '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
        '\0\r\n\r\n',
      ]) {
        const { status, text: answer } = await raw(bytes);
        expect({ bytes: bytes.slice(0, 400), status }).toEqual({
          bytes: bytes.slice(0, 400),
          status: expect.toSatisfy((one) => one === 0 || (one >= 400 && one < 500)),
        });
        expect(answer.split('HTTP/1.1 ').length).toBeLessThanOrEqual(2); // no answer to a second request
      }
    });

    it('a body that is too long, before it comes', async () => {
      const headers = { 'content-length': `${server.mostBytes + 1}` };
      const { status } = await send({ headers });
      expect(status).toBe(413);
    });

    it('bodies that are compressed, whatever they hold', async () => {
      for (const encoding of ['gzip', 'br', 'zstd', 'deflate', 'gzip, identity', 'x'])
        await refused({ headers: { 'content-encoding': encoding } }, [415]);
      await passes({ headers: { 'content-encoding': 'identity' } });
    });

    it('odd values in bodies, and has no accident with them', async () => {
      const keys = ['model', 'messages', 'input', 'tools', 'max_tokens', 'session_id', 'tags', 'run', '__proto__'];
      const values = fc.oneof(fc.jsonValue(), fc.dictionary(fc.constantFrom(...keys), fc.jsonValue()));
      const odd = ['null', '[]', '1e999', '"\\ud800"', '{"a":', '{"model":{"toString":1}}', `{"n":${'9'.repeat(400)}}`];
      const bodies = fc.sample(values, { numRuns: 40, seed: 9003 }).map((value) => JSON.stringify(value));
      for (const body of [...odd, ...bodies]) {
        const { status, text: answer } = await send({
          headers: { 'content-length': `${Buffer.byteLength(body)}` },
          body,
        });
        expect({ body, status }).toEqual({ body, status: expect.toSatisfy((one) => one >= 200 && one < 500) });
        expect(answer).not.toMatch(/\bat .+\.[jt]s:\d/); // no stack
      }
    });

    it('nothing to clients that come after others that vanish, close halfway or read no answer', async () => {
      const key = `Host: localhost\r\nAuthorization: Bearer ${server.key}\r\nContent-Type: application/json\r\n`;
      const whole = `POST ${server.post} HTTP/1.1\r\n${key}Content-Length: 2\r\n\r\n{}`;
      const parts = [
        whole,
        whole.slice(0, -1),
        whole.slice(0, 40),
        `GET ${server.get} HTTP/1.1\r\n${key}\r\n`.repeat(20),
      ];
      const gone = Array.from({ length: 64 }, (_, i) => {
        const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
        socket.on('error', () => {});
        socket.pause(); // reads nothing
        const leave = [() => socket.destroy(), () => socket.resetAndDestroy(), () => socket.end(), () => {}][i >> 4];
        socket.write(parts[i % 4] as string, () => leave?.());
        return socket;
      });
      const answered = expect.toSatisfy((status: number) => status >= 200 && status < 500 && status !== 408);
      for (const method of ['GET', 'POST']) expect((await send({ method })).status).toEqual(answered);
      for (const socket of gone) socket.destroy();
      expect((await send({ method: 'GET' })).status).toEqual(answered);
    });

    it('long bodies of many clients at once beyond a room for all, and serves others beside them', async () => {
      const key = `Authorization: Bearer ${server.key}\r\nContent-Type: application/json\r\n`;
      const head = `POST ${server.post} HTTP/1.1\r\nHost: localhost\r\n${key}Content-Length: ${server.mostBytes}\r\n\r\n{`;
      const long = Array.from({ length: 64 }, () => raw(head, hurriedPort));
      const answered = expect.toSatisfy((status: number) => status >= 200 && status < 500 && status !== 408);
      expect((await send({}, hurriedPort)).status).toEqual(answered);
      const statuses = (await Promise.all(long)).map(({ status }) => status);
      const refusals = statuses.filter((status) => status === 503).length;
      // On a busy machine the first are ended for slowness before the last come, and leave their room to them.
      if (64 * server.mostBytes > 256e6) expect(refusals).toBeGreaterThan(0);
    });

    it('to wait for heads and bodies that do not come, and serves others meanwhile', async () => {
      const head = `POST ${server.post} HTTP/1.1\r\nHost: localhost\r\n`;
      const key = `Authorization: Bearer ${server.key}\r\nContent-Type: application/json\r\n`;
      const slow = [
        ...Array.from({ length: 20 }, () => raw(head, hurriedPort)),
        ...Array.from({ length: 20 }, () => raw(`${head}${key}Content-Length: 1000\r\n\r\n{`, hurriedPort)),
        ...Array.from({ length: 20 }, () =>
          raw(`${head}${key}Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n`, hurriedPort),
        ),
      ];
      expect((await send({}, hurriedPort)).status).toBeLessThan(500);
      // A server that waits keeps this test until its own time is up.
      for (const { status } of await Promise.all(slow)) expect([0, 408, 503]).toContain(status);
    });

    it('a flood, and serves others beside it', slow, async () => {
      const head = `POST ${server.post} HTTP/1.1\r\nHost: localhost\r\n`;
      const key = `Authorization: Bearer ${server.key}\r\nContent-Type: application/json\r\n`;
      const dripping = Array.from({ length: 200 }, async (_, i) => {
        const bytes = i % 2 === 0 ? head : `${head}${key}Content-Length: 100000\r\n\r\n{`;
        const socket = connect(hurriedPort, '127.0.0.1').on('error', () => {});
        let sent = 0;
        const stop = repeatedly(40, () => socket.write(bytes[sent++] ?? ' '));
        const answer = await text(socket).catch(() => '');
        stop();
        return Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0);
      });
      const small = `GET ${server.get} HTTP/1.1\r\nHost: localhost\r\n${key}\r\n`;
      const flooding = Array.from({ length: 40 }, () => raw(small.repeat(500), hurriedPort));
      const odd = [
        raw(`${head}X: ${'x'.repeat(1e6)}\r\n\r\n`, hurriedPort),
        raw(`${head}${'X: y\r\n'.repeat(1e5)}\r\n`, hurriedPort),
        raw(`${head}${key}Content-Length: ${'9'.repeat(30)}\r\n\r\n`, hurriedPort),
      ];
      const answered = expect.toSatisfy((status: number) => status >= 200 && status < 500 && status !== 408);
      for (const method of ['GET', 'POST', 'GET'])
        expect((await send({ method }, hurriedPort)).status).toEqual(answered);
      for (const status of await Promise.all(dripping)) expect([0, 408]).toContain(status);
      for (const { status } of await Promise.all([...flooding, ...odd])) expect(status).toBeLessThan(500);
      expect((await send({ method: 'GET' }, hurriedPort)).status).toEqual(answered);
    });
  });
}
