import { afterAll, beforeAll } from 'vitest';
import { backendContract } from '../../../test/contracts/backend/index.js';
import { writeBaseModel } from '../../../test/support/tinker-fake/base-model.js';
import { adapterOn, openOnFake } from '../../../test/support/tinker-fake/open.js';
import type { TinkerFake } from '../../../test/support/tinker-fake/server.js';
import { temporaryRoot } from '../../../test/support/tiny-run.js';

const root = temporaryRoot();
const directory = `${root}/base-model`;
const fakes: TinkerFake[] = [];
beforeAll(async () => {
  await writeBaseModel(root);
});
afterAll(() => Promise.all(fakes.map((fake) => fake.close())));

for (const profile of ['skyrl-jax', 'hosted', 'skyrl-train', 'open-rl'] as const)
  backendContract(`the client of a server like ${profile}`, {
    async open() {
      const { backend, fake } = await openOnFake({ directory, behaves: profile, maxModels: 200 }, { profile });
      fakes.push(fake);
      return backend;
    },
    weights: (seed) => adapterOn(directory, seed),
    misfit: adapterOn(directory, 1, 4),
    digits: 3,
    learns: 0.02,
    root,
  });
