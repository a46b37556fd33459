import { expect, it } from 'vitest';
import { stopwatch } from '../../../test/support/time-and-chance.js';
import { webServer } from '../../../test/support/web-server.js';
import { TrackerServer } from './tracker-server.js';

it('asks a server again when the server wishes', async () => {
  const seconds = stopwatch();
  const server = await webServer((_, response) => {
    if (server.requests.length === 1) response.writeHead(429, { 'retry-after': '1' }).end();
    else response.end('{}');
  });
  const tracker = new TrackerServer({ name: 'the server', url: server.url, headers: {}, secret: undefined });
  expect(await tracker.ask('log', {})).toEqual({});
  expect(seconds()).toBeGreaterThan(0.99);
});

it.each([408, 522, 529])('asks again after the passing status %d', async (status) => {
  const server = await webServer((_, response) => {
    if (server.requests.length === 1) response.writeHead(status).end('<html></html>');
    else response.end('{}');
  });
  const tracker = new TrackerServer({ name: 'the server', url: server.url, headers: {}, secret: undefined });
  expect(await tracker.ask('log', {})).toEqual({});
});
