import { expect, it } from 'vitest';
import { stopwatch } from '../../../../test/support/time-and-chance.js';
import { webServer } from '../../../../test/support/web-server.js';
import { EngineHttp } from './engine-http.js';

it('asks a busy engine again when the engine wishes', async () => {
  const seconds = stopwatch();
  const server = await webServer((_, response) => {
    if (server.requests.length === 1) response.writeHead(503, { 'retry-after': '1' }).end();
    else response.end('{}');
  });
  const engine = new EngineHttp({ url: server.url, apiKey: undefined }, 1);
  expect(await engine.ask('/generate', {})).toEqual({ status: 200, body: {} });
  expect(seconds()).toBeGreaterThan(0.99);
});

it.each([408, 425, 502, 522, 524, 529])('asks again after the passing status %d', async (status) => {
  const server = await webServer((_, response) => {
    if (server.requests.length === 1) response.writeHead(status).end('<html></html>');
    else response.end('{}');
  });
  const engine = new EngineHttp({ url: server.url, apiKey: undefined }, 1);
  expect((await engine.ask('/generate', {})).status).toBe(200);
});

it.each([400, 401, 404, 500, 501, 505])('takes the status %d for an answer', async (status) => {
  const server = await webServer((_, response) => void response.writeHead(status).end());
  expect((await new EngineHttp({ url: server.url, apiKey: undefined }, 1).ask('/generate', {})).status).toBe(status);
  expect(server.requests).toHaveLength(1);
});
