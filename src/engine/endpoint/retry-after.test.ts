import fc from 'fast-check';
import { expect, it, vi } from 'vitest';
import { chatServer } from '../../../test/support/chat-server.js';
import { openEndpoint } from './endpoint-client.js';
import { endpointSchema } from './endpoint-spec.js';
import { boundedRetryAfter, LONGEST_RETRY_AFTER_MS } from './retry-after.js';

const NOW = Date.parse('2026-11-22T10:00:00Z');
const waitOf = (headers: Record<string, string>) =>
  boundedRetryAfter(new Headers(headers), NOW).get('retry-after-ms') ?? undefined;

it('is a time that a timer can wait for, whatever the server asks', () => {
  const numbers = fc.oneof(fc.double(), fc.integer(), fc.maxSafeInteger(), fc.constantFrom(1e9, 1e308, -1, Infinity));
  fc.assert(
    fc.property(numbers, fc.constantFrom('retry-after', 'retry-after-ms'), (value, name) => {
      const wait = waitOf({ [name]: String(value) });
      if (Number.isNaN(value)) expect(wait).toBeUndefined();
      else {
        expect(Number(wait)).toBeGreaterThanOrEqual(1);
        expect(Number(wait)).toBeLessThanOrEqual(LONGEST_RETRY_AFTER_MS);
      }
    }),
  );
});

it.each([
  [{ 'retry-after': '7' }, '7000'],
  [{ 'retry-after': '1000000000' }, '120000'],
  [{ 'retry-after': 'Sun, 22 Nov 2026 10:00:05 GMT' }, '5000'],
  [{ 'retry-after': 'Sun, 22 Nov 2096 10:00:05 GMT' }, '120000'],
  [{ 'retry-after': 'Sun, 22 Nov 1996 10:00:05 GMT' }, '1'],
  [{ 'retry-after': 'soon' }, undefined],
  [{ 'retry-after-ms': '20', 'retry-after': '7' }, '20'],
  [{}, undefined],
])('of %j is a wait of %s ms', (headers, expected) => {
  expect(waitOf(headers)).toBe(expected);
});

it('of 1e9 s is waited for, without an overflow of the timer', async () => {
  const warned = vi.fn();
  process.on('warning', warned);
  const controller = new AbortController();
  const { requests, url } = await chatServer((_, response) => {
    response.writeHead(429, { 'content-type': 'application/json', 'retry-after': '1000000000' });
    response.end('{}');
  });
  const endpoint = openEndpoint(endpointSchema.parse({ type: 'endpoint', url, model: 'm', timeoutMs: 1e12 }), {});
  const request = { messages: [], temperature: 1, topP: 1, topK: 0, maxTokens: 1, seed: 1 };
  const answer = endpoint.complete(request, controller.signal);
  answer.catch(() => {});
  await new Promise((resolve) => setTimeout(resolve, 300));
  process.off('warning', warned);
  expect(requests).toHaveLength(1);
  expect(warned).not.toHaveBeenCalled();
  controller.abort(new Error('over'));
});
