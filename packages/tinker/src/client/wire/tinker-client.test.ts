import { expect, it } from 'vitest';
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
