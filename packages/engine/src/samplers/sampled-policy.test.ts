import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { backendContract } from '../../../../test/contracts/backend/index.js';
import { demonstrations, learn, request, step } from '../../../../test/contracts/backend/subject.js';
import { SamplerFake } from '../../../../test/support/sampler-fake.js';
import { writeBaseModel } from '../../../../test/support/tinker-fake/base-model.js';
import { adapterOn } from '../../../../test/support/tinker-fake/open.js';
import { temporaryRoot } from '../../../../test/support/tiny-run.js';
import { BackendError } from '../base/core/errors.js';
import { nodeFiles } from '../base/platform/node-files.js';
import { nodeHost } from '../base/platform/node-host.js';
import type { WeightsSpec } from '../contract/weights-spec.js';
import { embedded } from '../devices/embedded-declaration.js';
import { startEmbedded } from '../embedded/start-embedded.js';
import { SampledBackend } from './sampled-backend.js';
import { samplerSchema } from './sampler-spec.js';

describe('sampled contract', () => {
  const root = temporaryRoot();
  const directory = `${root}/base-model`;
  const fakes: SamplerFake[] = [];
  beforeAll(async () => {
    await writeBaseModel(root);
  });
  afterAll(() => Promise.all(fakes.map((fake) => fake.close())));

  // One engine in the daily tests: the engines differ in their requests, which the tests below compare.
  for (const [type, tags] of [
    ['vllm', []],
    ['sglang', ['verify']],
  ] as const)
    describe('one engine', { tags: [...tags] }, () =>
      backendContract(`the embedded engine with the sampler ${type}`, {
        async open() {
          const fake = await SamplerFake.start({ type, directory });
          fakes.push(fake);
          const trainer = await startEmbedded({ threads: 1, files: nodeFiles });
          const spec = samplerSchema.parse({ type, url: fake.url, folder: root });
          return SampledBackend.connect(trainer, spec, {
            host: nodeHost({}),
            row: embedded,
            weights: [adapterOn(directory)],
          });
        },
        weights: (seed) => adapterOn(directory, seed),
        misfit: adapterOn(directory, 1, 4),
        learns: 0.02,
        root: join(root, type),
      }),
    );
});

describe('sampled policy', () => {
  const root = temporaryRoot();
  const directory = join(root, 'base-model');
  const ends: (() => Promise<unknown>)[] = [];
  beforeAll(() => writeBaseModel(root));
  afterAll(async () => {
    for (const end of ends.reverse()) await end();
  });

  /** A trainer here with a fake of an engine, its warnings, and the folder of the weights. */
  async function sampled(
    type: 'vllm' | 'sglang',
    {
      weights = adapterOn(directory),
      fake: started,
      ...spec
    }: { weights?: WeightsSpec; fake?: SamplerFake; model?: string; apiKey?: string } = {},
  ) {
    const fake = started ?? (await SamplerFake.start({ type, directory }));
    if (started === undefined) ends.push(() => fake.close());
    const trainer = await startEmbedded({ threads: 1, files: nodeFiles });
    ends.push(() => trainer.dispose());
    const warnings: string[] = [];
    const folder = join(root, `weights-${ends.length}`);
    const backend = await SampledBackend.connect(
      trainer,
      samplerSchema.parse({ type, url: fake.url, folder, ...spec }),
      {
        host: nodeHost({ warn: (_, message) => void warnings.push(message) }),
        row: embedded,
        weights: [weights],
        environment: {},
        backOffMs: 5,
      },
    );
    return { fake, backend, warnings, folder };
  }

  describe.each(['vllm', 'sglang'] as const)('adapters on %s', (type) => {
    it('are given under a name for each version, and given back when nobody plays them any more', {
      tags: 'verify',
    }, async () => {
      const { fake, backend, folder } = await sampled(type);
      const policy = await backend.open(adapterOn(directory), 'policy', 'solver');
      await policy.publish(2);
      const [first] = fake.adapters;
      expect(first).toMatch(/^drmas-solver-0-/);
      await policy.publish(2);
      expect(fake.adapters).toEqual([first, expect.stringMatching(/^drmas-solver-1-/)]);
      await policy.publish();
      expect(fake.adapters).toEqual([expect.stringMatching(/^drmas-solver-2-/)]);
      const left = async () =>
        (await readdir(folder, { recursive: true })).filter((path) => /solver-\d-\w+$/.test(path));
      expect(await left()).toHaveLength(1);
      await backend.dispose();
      expect(await left()).toEqual([]);
      expect(fake.adapters).toEqual([]);
    });

    it('are given again to an engine that was started anew', { tags: 'verify' }, async () => {
      const { fake, backend, warnings } = await sampled(type);
      const policy = await backend.open(adapterOn(directory), 'policy', 'solver');
      await learn(policy, demonstrations(1));
      await step(policy);
      await policy.publish();
      const before = await policy.generate(request(policy, 1));
      await fake.restart();
      const again = await Promise.all([1, 1].map((n) => policy.generate(request(policy, n))));
      expect(again).toEqual([before, before]);
      expect(warnings).toEqual([expect.stringMatching(/^version 0 of 'solver' was pushed again: /)]);
    });

    it('are sampled again where the engine was busy, with its key and nothing of the tokenizer', async () => {
      const { fake, backend } = await sampled(type, { apiKey: 'a-key-for-sampling' });
      const policy = await backend.open(adapterOn(directory), 'policy', 'solver');
      await policy.publish();
      fake.busy = 2;
      const { tokens, logprobs } = await policy.generate(request(policy, 2));
      expect(logprobs).toHaveLength(tokens.length);
      const { body } = fake.requests.at(-1) ?? {};
      expect(body).toMatchObject(type === 'vllm' ? { prompt: request(policy, 2).prompt } : { return_logprob: true });
      expect(fake.keys).toEqual(new Set(['Bearer a-key-for-sampling']));
    });
  });

  it('plays a whole model on sglang under a version that every answer names', { tags: 'verify' }, async () => {
    const weights = { type: 'directory', directory } as const;
    const { fake, backend, warnings } = await sampled('sglang', { weights });
    expect(backend.capabilities.keepsVersions).toBe(false);
    const policy = await backend.open(weights, 'policy', 'solver');
    await learn(policy, demonstrations(1));
    await step(policy);
    await policy.publish();
    const before = await policy.generate(request(policy, 1));
    expect(before.policyVersion).toBe(0);
    await fake.restart(); // answers with the weights that it was started with
    expect(await policy.generate(request(policy, 1))).toEqual(before);
    expect(warnings).toEqual([expect.stringMatching(/answered with the weights 'default', not with 'drmas-solver-0-/)]);
    fake.mixed = true; // an answer that an update cut in two is sampled again
    expect(await policy.generate(request(policy, 1))).toEqual(before);
    expect(warnings).toHaveLength(2);
    await sampled('sglang', { weights, fake }); // its model is by now the one that was pushed
    await expect(backend.open(weights, 'policy', 'verifier')).rejects.toThrow(/plays the whole model 'solver'/);
  });

  it('gives up where an engine does not keep what it is given', { tags: 'verify' }, async () => {
    const weights = { type: 'directory', directory } as const;
    const { fake, backend } = await sampled('sglang', { weights });
    const policy = await backend.open(weights, 'policy', 'solver');
    await policy.publish();
    fake.keeps = false;
    await fake.restart();
    await expect(policy.generate(request(policy, 1))).rejects.toThrow(/answered with the weights 'default'/);
    expect(fake.requests.filter(({ path }) => path === '/update_weights_from_disk')).toHaveLength(3);
  });

  it('refuses whole models on vllm, and an engine with another model', { tags: 'verify' }, async () => {
    const { backend } = await sampled('vllm');
    await expect(backend.open({ type: 'directory', directory }, 'policy', 'solver')).rejects.toThrow(
      /vllm takes adapters while it runs/,
    );
    await expect(sampled('vllm', { model: 'Qwen/Qwen3-4B' })).rejects.toThrow(
      /serves .*base-model.*, not Qwen\/Qwen3-4B/,
    );
    const trainer = await startEmbedded({ threads: 1, files: nodeFiles });
    ends.push(() => trainer.dispose());
    const nobody = samplerSchema.parse({ type: 'vllm', url: 'http://127.0.0.1:9' });
    const options = { host: nodeHost({}), row: embedded, weights: [], environment: {}, backOffMs: 1 };
    await expect(SampledBackend.connect(trainer, nobody, options)).rejects.toThrow(BackendError);
  });
});
