/** Clients that open a stream and do not read it. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { listen } from '@drmas/engine/platform';
import { expect, it } from 'vitest';
import { eventually } from '../../../test/support/time-and-chance.js';
import type { ModelDelta } from './dialect.js';
import { modelApp } from './model-app.js';

const PIECE = 'x'.repeat(1 << 16);

it.each(['/v1/chat/completions', '/v1/responses', '/v1/messages'])(
  'a stream of %s is written as far as its client reads, and ends with a reason',
  async (path) => {
    let [begun, written] = [0, 0];
    const reasons: unknown[] = [];
    async function* endless(signal: AbortSignal): AsyncGenerator<ModelDelta> {
      begun++;
      signal.addEventListener('abort', () => reasons.push(signal.reason));
      yield { type: 'begin', id: 'a', promptTokens: 1 };
      for (; ; written += PIECE.length) {
        await new Promise(setImmediate);
        yield { type: 'text', text: PIECE };
      }
    }
    const app = modelApp({
      authorise: () => 'anyone',
      models: () => ['solver'],
      complete: (_, { signal }) => endless(signal),
      countTokens: () => 1,
    });
    const options = { host: '127.0.0.1', port: 0, deadlines: { readMs: 300, checkMs: 10 } };
    const server = await listen({ app, guard: () => undefined }, options);
    const content = [{ role: 'user', content: 'Hi' }];
    const body = JSON.stringify({ model: 'solver', max_tokens: 9, messages: content, input: content, stream: true });
    const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
    const clients = Array.from({ length: 8 }, () => {
      const socket = connect(Number(new URL(server.url).port), '127.0.0.1').on('error', () => {});
      socket.pause().write(`${head}\r\n\r\n${body}`);
      return socket;
    });
    await Promise.all(clients.map((socket) => once(socket, 'connect')));
    // On a busy machine the server may give up a connection before it has seen its request.
    await eventually(() => begun > 0 && reasons.length === begun);
    for (const reason of reasons) expect(String(reason)).toMatch(/client has gone, or has not read its answer/);
    expect(written).toBeLessThan(clients.length * 16e6); // the buffers of the connections
    for (const socket of clients) socket.destroy();
    await server.close();
  },
);
