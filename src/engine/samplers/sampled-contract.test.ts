import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { backendContract } from '../../../test/contracts/backend/index.js';
import { SamplerFake } from '../../../test/support/sampler-fake.js';
import { writeBaseModel } from '../../../test/support/tinker-fake/base-model.js';
import { adapterOn } from '../../../test/support/tinker-fake/open.js';
import { temporaryRoot } from '../../../test/support/tiny-run.js';
import { nodeFiles } from '../../base/platform/node-files.js';
import { nodeHost } from '../../base/platform/node-host.js';
import { embedded } from '../embedded/embedded-declaration.js';
import { startEmbedded } from '../embedded/start-embedded.js';
import { SampledBackend } from './sampled-backend.js';
import { samplerSchema } from './sampler-spec.js';

const root = temporaryRoot();
const directory = `${root}/base-model`;
const fakes: SamplerFake[] = [];
beforeAll(async () => {
  await writeBaseModel(root);
});
afterAll(() => Promise.all(fakes.map((fake) => fake.close())));

for (const type of ['vllm', 'sglang'] as const)
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
  });
