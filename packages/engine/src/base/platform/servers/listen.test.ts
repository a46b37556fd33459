import { once } from 'node:events';
import { Agent, request as httpRequest } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { eventually, takesTime } from '../../../../../../test/support/time-and-chance.js';
import { DialectError } from '../../core/errors.js';
import { bodyText } from '../../core/request-body.js';
import { type Deadlines, type Listening, listen, type Room } from './listen.js';

describe('deadlines', () => {
  const open: Listening[] = [];
  const sockets: Socket[] = [];
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    for (const each of open.splice(0)) await each.close();
  });

  async function served(
    fetch: (request: Request) => Response | Promise<Response>,
    deadlines: Partial<Deadlines> = {},
    room: Partial<Room> = {},
  ) {
    const options = { host: '127.0.0.1', port: 0, deadlines: { checkMs: 10, ...deadlines }, room };
    const listening = await listen({ app: { fetch }, guard: () => undefined }, options);
    open.push(listening);
    return listening;
  }

  function connected({ url }: Listening, bytes: string): Socket {
    const socket = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {});
    sockets.push(socket);
    socket.write(bytes);
    return socket;
  }

  function resolvers() {
    let resolve = () => {};
    const promise = new Promise<void>((fulfil) => {
      resolve = fulfil;
    });
    return { promise, resolve };
  }

  const HEAD = 'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n';
  const read = async (request: Request) => new Response(`${(await request.text()).length}`);

  it('ends a body that stands still, with 408, and lets one that moves come slowly', { tags: 'verify' }, async () => {
    const server = await served(read, { bodyMs: 600, bodyMsPerKilobyte: 10_000 });
    const silent = connected(server, `${HEAD}\r\n{`);
    const [part] = (await once(silent, 'data')) as [Buffer];
    expect(`${part}`).toMatch(/^HTTP\/1.1 408 /);
    const slow = connected(server, `${HEAD}Connection: close\r\n\r\n`);
    const closed = once(slow, 'close');
    let answer = '';
    slow.on('data', (bytes) => {
      answer += bytes;
    });
    for (let i = 0; i < 10; i++) {
      slow.write('x'.repeat(100));
      await takesTime(70);
    }
    await closed;
    expect(answer).toMatch(/200 OK[\s\S]*1000$/);
  });

  it('answers a body in chunks that is too long, and the next request of the connection', async () => {
    const short = (request: Request) =>
      bodyText(request, 1e5).then(
        ({ length }) => new Response(`${length}`),
        (error: DialectError) => new Response(error.message, { status: error.status }),
      );
    const { url } = await served(short);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    // A server that does not read a body closes its connection if the client takes longer than half a second for the
    // rest. A client asks again on another one, as Node's documentation advises.
    const ask = (bytes: number): Promise<string> =>
      new Promise<string>((resolve, reject) => {
        const request = httpRequest(url, { agent, method: 'POST' }, async (response) => {
          let text = '';
          for await (const part of response) text += part;
          resolve(`${response.statusCode} ${text}`);
        }).on('error', (error: NodeJS.ErrnoException) => {
          if (request.reusedSocket && error.code === 'ECONNRESET') resolve(ask(bytes));
          else reject(error);
        });
        for (let sent = 0; sent < bytes; sent += 5e4) request.write('x'.repeat(5e4));
        request.end();
      });
    const refused = '413 the body is longer than 0.1 MB';
    for (const bytes of [1e7, 1e5, 2e7, 1e7, 5e4])
      expect(await ask(bytes)).toBe(bytes > 1e5 ? refused : `200 ${bytes}`);
    agent.destroy();
  });

  it('refuses long bodies beyond its room until others have come, and takes small ones', async () => {
    let begun = 0;
    const counting = (request: Request) => {
      begun++;
      return read(request);
    };
    const server = await served(counting, {}, { bodyBytes: 300_000 });
    const long = (length: string, part = '{') =>
      `POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${length}\r\n\r\n${part}`;
    const first = connected(server, long('Content-Length: 200000'));
    const answerOf = async (socket: Socket) => `${(await once(socket, 'data'))[0]}`;
    await eventually(() => expect(begun).toBe(1));
    expect(await answerOf(connected(server, long('Content-Length: 200000')))).toMatch(
      /^HTTP\/1\.1 503 [\s\S]*retry-after: 1/i,
    );
    const post = (length: number) => fetch(server.url, { method: 'POST', body: 'x'.repeat(length) });
    expect(await (await post(1000)).text()).toBe('1000');
    first.write('x'.repeat(199_999));
    expect(await answerOf(first)).toMatch(/200 OK/);
    await eventually(async () => expect(await (await post(200_000)).text()).toBe('200000'));
  });

  it('counts bodies in chunks by what has come, and refuses what no longer fits', async () => {
    const app = async (request: Request) => {
      try {
        return await read(request);
      } catch (error) {
        if (error instanceof DialectError) return Response.json({ code: error.code }, { status: error.status });
        throw error;
      }
    };
    const server = await served(app, {}, { bodyBytes: 300_000 });
    const head = 'POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n';
    const chunk = (length: number) => `${length.toString(16)}\r\n${'x'.repeat(length)}\r\n`;
    const end = '0\r\n\r\n';
    const answerOf = async (socket: Socket) => `${(await once(socket, 'data'))[0]}`;
    // Fifty that have sent a byte take no room from a long one.
    const open = Array.from({ length: 50 }, () => connected(server, head + chunk(1)));
    expect(await answerOf(connected(server, head + chunk(200_000) + end))).toMatch(/ 200 OK[\s\S]*200000$/);
    for (const socket of open) socket.write(end);
    for (const answer of await Promise.all(open.map(answerOf))) expect(answer).toMatch(/ 200 OK/);
    // Together these are too long: some end, and the others are answered.
    const growing = Array.from({ length: 8 }, () => connected(server, head + chunk(50_000)));
    const answers = growing.map(answerOf);
    for (const socket of growing) socket.write(chunk(50_000));
    expect(await Promise.race(answers)).toMatch(/ 503 [\s\S]*"busy"/);
    for (const socket of growing) socket.write(end);
    const statuses = (await Promise.all(answers)).map((answer) => Number(answer.split(' ')[1]));
    expect(new Set(statuses)).toEqual(new Set([200, 503]));
  });

  it('closes the oldest connection without a request for a new one beyond its room', async () => {
    const { promise: released, resolve: release } = resolvers();
    const server = await served(() => released.then(() => new Response('late')), {}, { connections: 20 });
    const waiting = fetch(server.url);
    const idle = Array.from({ length: 40 }, () => connected(server, 'GET'));
    await eventually(() => expect(idle.filter(({ closed }) => closed).length).toBeGreaterThanOrEqual(20));
    const next = fetch(server.url);
    release();
    expect(await (await next).text()).toBe('late');
    expect(await (await waiting).text()).toBe('late');
  });

  it('ends a head that does not come', async () => {
    const server = await served(read, { headMs: 100 });
    const silent = connected(server, 'GET / HTTP/1.1\r\n').resume();
    await once(silent, 'close');
  });

  it('keeps a connection after an answer longer than clients and proxies use it again, and not for ever', async () => {
    const kept = await fetch((await served(() => new Response('here'))).url);
    expect(Number(/timeout=(\d+)/.exec(kept.headers.get('keep-alive') ?? '')?.[1])).toBeGreaterThan(90);
    const server = await served(() => new Response('here'), { idleMs: 50 });
    const idle = connected(server, 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n').resume();
    await once(idle, 'close');
  });

  it('ends an answer that its client does not read, and no answer that takes its time', async () => {
    const ended = resolvers();
    const endless = () =>
      new Response(
        new ReadableStream({
          pull: (controller) => controller.enqueue(new Uint8Array(1e6)),
          cancel: () => ended.resolve(),
        }),
      );
    const late = async () => {
      await takesTime(900);
      return new Response('late');
    };
    // A busy machine takes a while from a connection to its request.
    const server = await served(({ url }) => (url.endsWith('/late') ? late() : endless()), { readMs: 600 });
    connected(server, 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n').pause();
    const [answer] = await Promise.all([fetch(`${server.url}/late`), ended.promise]);
    expect(await answer.text()).toBe('late');
  });

  it('closes a connection that sends hundreds of requests at once, and answers a few, and others', async () => {
    let reached = 0;
    const server = await served(async () => {
      reached++;
      await takesTime(50);
      return new Response('late');
    });
    const request = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n';
    const few = connected(server, request.repeat(8));
    let answers = '';
    few.on('data', (bytes) => {
      answers += bytes;
    });
    await eventually(() => expect(answers.split('HTTP/1.1 200')).toHaveLength(1 + 8));
    const greedy = connected(server, request.repeat(500)).resume();
    await once(greedy, 'close');
    expect(await (await fetch(server.url)).text()).toBe('late');
    expect(reached).toBeLessThan(64);
  });

  it('ends the body of an answer to HEAD, which nobody reads', async () => {
    const ended = resolvers();
    const endless = new ReadableStream({ cancel: () => ended.resolve() });
    const server = await served(({ method }) => new Response(endless, { headers: { 'x-method': method } }));
    const answer = await fetch(server.url, { method: 'HEAD' });
    expect([answer.status, answer.headers.get('x-method'), await answer.text()]).toEqual([200, 'GET', '']);
    await ended.promise;
  });

  it('drains without connections that have sent no whole request, and finishes the others', async () => {
    const reached = resolvers();
    const finish = resolvers();
    const server = await served(async ({ method }) => {
      if (method === 'GET') reached.resolve();
      await finish.promise;
      return new Response('whole');
    });
    for (const bytes of ['', 'GET / HT', `${HEAD}\r\n{`]) connected(server, bytes);
    const answer = new Promise<string>((resolve, reject) => {
      httpRequest(server.url, { headers: { connection: 'keep-alive' } }, async (response) => {
        let text = '';
        for await (const part of response) text += part;
        resolve(text);
      })
        .on('error', reject)
        .end();
    });
    await reached.promise;
    // A server that waits for the other connections keeps this test until its own time is up.
    const drained = server.drain();
    finish.resolve();
    await drained;
    expect(await answer).toBe('whole');
  });
});
