/** Clients that disappear: their places are free again, and the end of the server does not wait for them. */
import { request as httpRequest } from 'node:http';
import type { AgentModel } from '@drmas/engine/endpoints';
import type { Listening } from '@drmas/engine/internal/base/platform/servers/listen';
import { listen } from '@drmas/engine/platform';
import { bytesTokenizer } from '@drmas/engine/tokens';
import { afterEach, describe, expect, it } from 'vitest';
import { eventually } from '../../../test/support/time-and-chance.js';
import { scriptedSampler } from '../../runs/testing/scripted-sampler.js';
import { type ModelServer, modelServer } from './model-server.js';

const sampling = { temperature: 1, topP: 1, topK: 0, maxTokens: 40 };
const WORDS = 'one two three four';

/** @param generate The model's own sampling instead of the script's */
function serverOf(generate?: AgentModel['model']['generate']): ModelServer {
  const model = scriptedSampler(() => WORDS, bytesTokenizer()).policy('scripted', 512);
  const agent = { name: 'scripted', system: 'Be brief.', sampling };
  const agentModels = new Map([
    ['scripted', { agent, model: generate === undefined ? model : { ...model, generate } }],
  ]);
  return modelServer({ agentModels, most: 2 });
}

const question = [{ role: 'user', content: 'one?' }];
const DIALECTS: Readonly<Record<string, object>> = {
  '/v1/chat/completions': { messages: question },
  '/v1/responses': { input: 'one?' },
  '/v1/messages': { messages: question, max_tokens: 40 },
};
const bodyOf = (route: string, stream: boolean) => JSON.stringify({ model: 'scripted', stream, ...DIALECTS[route] });
const headers = { 'content-type': 'application/json' };

const ask = ({ app }: ModelServer, route: string, signal: AbortSignal | null = null) =>
  app.request(`http://localhost${route}`, { method: 'POST', headers, body: bodyOf(route, true), signal });

const runningOf = async ({ app }: ModelServer) =>
  ((await (await app.request('http://localhost/health')).json()) as { running: number }).running;
const freed = (server: ModelServer) => eventually(async () => expect(await runningOf(server)).toBe(0));

describe.each(Object.keys(DIALECTS))('a client of %s that disappears', (route) => {
  it('after any piece of a streamed answer leaves its place', async () => {
    const whole = serverOf();
    const response = await ask(whole, route);
    let pieces = 0;
    for await (const _ of response.body ?? []) pieces++;
    expect(pieces).toBeGreaterThan(5);
    for (let read = 0; read <= pieces; read++) {
      const server = serverOf();
      const { body } = await ask(server, route);
      const reader = body?.getReader();
      for (let piece = 0; piece < read; piece++) await reader?.read();
      await reader?.cancel();
      await freed(server);
      await server.drain();
    }
  });

  it('before its body is read at all, by its signal alone, leaves its place', async () => {
    const server = serverOf();
    const gone = new AbortController();
    await ask(server, route, gone.signal);
    gone.abort(new Error('closed'));
    await freed(server);
  });

  it('does not keep its place while the model is still busy with its prompt', async () => {
    const server = serverOf(() => new Promise(() => {}));
    const { body } = await ask(server, route);
    const drained = server.drain();
    await body?.cancel();
    await freed(server);
    await drained;
  });
});

describe('a server with connections', () => {
  const open: Listening[] = [];
  afterEach(async () => {
    for (const each of open.splice(0)) await each.close();
  });

  it.each([true, false])('frees the places of sockets that are cut after any part (streamed: %s)', async (stream) => {
    const server = serverOf();
    const listening = await listen(server, { host: '127.0.0.1', port: 0 });
    open.push(listening);
    for (const route of Object.keys(DIALECTS))
      for (let bytes = 0; bytes < 1200; bytes += 150)
        await new Promise<void>((resolve) => {
          const sent = httpRequest(`${listening.url}${route}`, { method: 'POST', headers });
          sent.on('error', () => {}).on('close', resolve);
          sent.end(bodyOf(route, stream), () => bytes === 0 && sent.destroy());
          let left = bytes;
          sent.on('response', (response) =>
            response.on('data', ({ length }: Buffer) => {
              left -= length;
              if (left <= 0) sent.destroy();
            }),
          );
        });
    await freed(server);
    // A server that waits for one of these clients keeps this test until its own time is up.
    await server.drain();
    await listening.drain();
  });
});
