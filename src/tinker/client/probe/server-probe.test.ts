import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeBaseModel } from '../../../../test/support/tinker-fake/base-model.js';
import type { FakeName } from '../../../../test/support/tinker-fake/behaviour.js';
import type { FakeOptions } from '../../../../test/support/tinker-fake/options.js';
import { TinkerFake } from '../../../../test/support/tinker-fake/server.js';
import { temporaryRoot } from '../../../../test/support/tiny-run.js';
import { PROFILES, type ServerProfile } from '../server-profile.js';
import { defaultTiming } from '../wire/http.js';
import { TinkerClient } from '../wire/tinker-client.js';
import { probeServer } from './server-probe.js';

const root = temporaryRoot();
let directory = '';
beforeAll(async () => {
  directory = await writeBaseModel(root);
});

const fakes: TinkerFake[] = [];
afterAll(() => Promise.all(fakes.map((fake) => fake.close())));

async function probed(behaves: FakeName, changes: FakeOptions['changes'] = {}) {
  const fake = await TinkerFake.start({ directory, behaves, changes });
  fakes.push(fake);
  const client = new TinkerClient({ url: fake.url, apiKey: undefined, timing: { ...defaultTiming, backOff: 0.01 } });
  const profile = await probeServer({ client, baseModel: directory, rank: 2 });
  client.close();
  return { profile, fake };
}

describe('the probe finds out what a server does', () => {
  it.each(['skyrl-jax', 'skyrl-train', 'open-rl'] as const)('%s', async (behaves) => {
    const { profile } = await probed(behaves);
    expect(profile).toEqual({ ...PROFILES[behaves], name: behaves } satisfies ServerProfile);
  });

  it('a server that tells losses and no norms', async () => {
    const { profile } = await probed('hosted');
    const { native, clipsGradients, ...rest } = PROFILES.hosted;
    expect(profile).toMatchObject({ name: 'hosted', ...rest });
    expect(profile.native).toEqual([]); // cannot be seen there, so it is not used
  });
});
