import { once } from 'node:events';
import { expect, it } from 'vitest';
import { BackendError } from '../core/errors.js';
import { startWorker } from './start-worker.js';

// All other tests start compiled ones (test/compile-workers.ts).
it('starts a module from its sources', async () => {
  const worker = startWorker('../../embedded/thread/engine-worker', import.meta.url, { threads: 1 });
  let [message] = await once(worker, 'message');
  while (message.type === 'progress') [message] = await once(worker, 'message'); // it compiles kernels first
  expect(message).toMatchObject({ type: 'ready', threads: 1 });
  expect(await worker.terminate()).toBe(1);
});

it.each([undefined, 'file:///app/bundle.mjs'])('says what to do in a bundle: %s', (from) => {
  expect(() => startWorker('engine-worker', from, {})).toThrow(BackendError);
  expect(() => startWorker('engine-worker', from, {})).toThrow(/engine-worker\.js .* out of the bundle/);
});
