import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { request } from '../../../../test/contracts/backend/subject.js';
import { lies, liesOfTwoLists, withLie } from '../../../../test/support/lying-sampler.js';
import { SamplerFake } from '../../../../test/support/sampler-fake.js';
import { writeBaseModel } from '../../../../test/support/tinker-fake/base-model.js';
import { adapterOn } from '../../../../test/support/tinker-fake/open.js';
import { temporaryRoot } from '../../../../test/support/tiny-run.js';
import { BackendError } from '../base/core/errors.js';
import { nodeFiles } from '../base/platform/node-files.js';
import { nodeHost } from '../base/platform/node-host.js';
import type { PolicyHandle } from '../contract/handles.js';
import { embedded } from '../devices/embedded-declaration.js';
import { startEmbedded } from '../embedded/start-embedded.js';
import { SampledBackend } from './sampled-backend.js';
import { samplerSchema } from './sampler-spec.js';

const root = temporaryRoot();
const directory = join(root, 'base-model');
const VOCABULARY = 261;
beforeAll(() => writeBaseModel(root));

describe.each(['vllm', 'sglang'] as const)('an engine of the type %s that answers with', (type) => {
  let fake: SamplerFake;
  let policy: PolicyHandle;
  let backend: SampledBackend;
  beforeAll(async () => {
    fake = await SamplerFake.start({ type, directory });
    const trainer = await startEmbedded({ threads: 1, files: nodeFiles });
    const spec = samplerSchema.parse({ type, url: fake.url, folder: join(root, type) });
    const options = { host: nodeHost({}), row: embedded, weights: [adapterOn(directory)], environment: {} };
    backend = await SampledBackend.connect(trainer, spec, { ...options, backOffMs: 1 });
    policy = await backend.open(adapterOn(directory), 'policy', 'solver');
    await policy.publish();
  });
  afterAll(async () => {
    await backend.dispose();
    await fake.close();
  });

  const kinds = [...lies(VOCABULARY), ...(type === 'vllm' ? liesOfTwoLists : [])];
  it.each(kinds)(
    '$name: is refused with server, policy, field and value, and the next honest answer counts',
    async (lie) => {
      fake.lie = undefined;
      const honest = await policy.generate(request(policy, 1));
      fake.lie = (text) => withLie(type, lie, text);
      const error = await policy.generate(request(policy, 1)).catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(BackendError);
      expect((error as Error).message).toMatch(lie.error);
      expect((error as Error).message).toContain(fake.url);
      if (!lie.name.startsWith('NaN')) expect((error as Error).message).toMatch(/policy 'solver'/);
      fake.lie = undefined;
      expect(await policy.generate(request(policy, 1))).toEqual(honest);
    },
  );

  it('at least 21 kinds of lies in all', () => expect(kinds.length).toBeGreaterThanOrEqual(21));
});
