// @module-tag verify
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeBaseModel } from '../../../test/support/tinker-fake/base-model.js';
import { adapterOn } from '../../../test/support/tinker-fake/open.js';
import { TinkerFake } from '../../../test/support/tinker-fake/server.js';
import { temporaryRoot } from '../../../test/support/tiny-run.js';
import { BackendError } from '../../base/core/errors.js';
import { randomKey } from '../../base/core/random.js';
import { nodeHost } from '../../base/platform/node-host.js';
import { TinkerBackend } from './tinker-backend.js';

const root = temporaryRoot();
let directory = '';
let fake: TinkerFake;
beforeAll(async () => {
  directory = await writeBaseModel(root);
  fake = await TinkerFake.start({ directory });
});
afterAll(() => fake.close());

const DEADLINE = 0.6;
/** With the usual time limits, so that a single request may take 75 s. */
const connect = () =>
  TinkerBackend.connect(
    {
      ...{ type: 'tinker', url: fake.url, profile: 'skyrl-jax', models: {}, concurrency: 8, saveEvery: 1 },
      deadlineSeconds: DEADLINE,
    },
    { host: nodeHost({ warn: () => {} }), models: [adapterOn(directory)], environment: {} },
  );

/** How an action failed, and after how many seconds. */
async function ending(action: () => Promise<unknown>) {
  const start = performance.now();
  const error = await action().catch((caught: unknown) => caught);
  return { error: error as Error, seconds: (performance.now() - start) / 1000 };
}

describe('a server that takes a request and never answers', () => {
  const silent = (path: string) => {
    for (let i = 0; i < 20; i++) fake.inject(path, { type: 'answer', answer: () => {} });
  };

  it.each(['get_server_capabilities', 'create_session', 'create_model', 'retrieve_future'])(
    'with %s: the model is given up after deadlineSeconds, by name',
    async (path) => {
      silent(path);
      const { error, seconds } = await ending(async () => {
        const backend = await connect();
        await backend.open(adapterOn(directory), 'policy', 'one');
      });
      fake.calm();
      expect(error).toBeInstanceOf(BackendError);
      expect(error.message).toMatch(/within 0\.6 s/);
      expect(error.message).toContain(path === 'retrieve_future' ? 'create_model' : path);
      expect(seconds).toBeGreaterThanOrEqual(DEADLINE - 0.1);
      expect(seconds).toBeLessThan(3 * DEADLINE);
    },
  );

  it.each(['asample', 'forward', 'save_weights_for_sampler', 'save_weights'])(
    'with %s: the call ends by name',
    async (path) => {
      const backend = await connect();
      const policy = await backend.open(adapterOn(directory), 'policy', 'one');
      await policy.publish();
      silent(path);
      const sampled = { prompt: [3, 4], temperature: 1, topP: 1, topK: 0, maxTokens: 3, stopTokens: [] };
      const zeros = new Float32Array(3);
      const sample = {
        ...{
          tokens: Int32Array.of(1, 2, 3),
          mask: Uint8Array.of(0, 1, 1),
          behaviourLogprobs: zeros,
          advantages: zeros,
        },
        ...{ temperature: 1, policyVersion: 0, agent: 'solver' },
      };
      const { error, seconds } = await ending(() => {
        if (path === 'asample') return policy.generate({ ...sampled, key: randomKey('silent') });
        if (path === 'forward') return policy.logprobs([sample]);
        return path === 'save_weights' ? policy.save(root) : policy.publish();
      });
      fake.calm();
      expect(error).toBeInstanceOf(BackendError);
      expect(error.message).toMatch(new RegExp(`${path}.*within 0\\.6 s`));
      expect(seconds).toBeLessThan(3 * DEADLINE);
      await backend.dispose();
    },
  );
});
