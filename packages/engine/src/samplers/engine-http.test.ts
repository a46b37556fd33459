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
