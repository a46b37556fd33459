/** A backend on a fake server, with short waits. */

import { nodeHost } from '../../../src/base/platform/node-host.js';
import { PROJECTIONS } from '../../../src/engine/contract/architecture.js';
import type { WeightsSpec } from '../../../src/engine/contract/weights-spec.js';
import { TinkerBackend } from '../../../src/tinker/client/tinker-backend.js';
import type { TinkerSpec } from '../../../src/tinker/client/tinker-spec.js';
import type { FakeOptions } from './options.js';
import { TinkerFake } from './server.js';

export const adapterOn = (directory: string, seed = 1, rank = 2): WeightsSpec => ({
  type: 'adapter',
  base: { type: 'directory', directory },
  adapter: { rank, alpha: rank, targets: PROJECTIONS },
  seed,
});

/** Profiles are given by name, except in tests of their detection. */
export async function openOnFake(options: FakeOptions, spec: Partial<TinkerSpec> = {}) {
  const fake = await TinkerFake.start(options);
  const warnings: string[] = [];
  const connect = () =>
    TinkerBackend.connect(
      {
        type: 'tinker',
        url: fake.url,
        profile: 'skyrl-jax',
        models: {},
        concurrency: 8,
        saveEvery: 1,
        deadlineSeconds: 2,
        ...spec,
      },
      {
        host: nodeHost({ warn: (_, message) => void warnings.push(message) }),
        models: [adapterOn(options.directory)],
        environment: {},
        timing: { request: 1, backOff: 0.005, retries: 6, heartbeat: 0.2 },
      },
    );
  return { fake, warnings, connect, backend: await connect() };
}
