/** A backend on a fake server, with short waits. */
import { TinkerBackend } from '../../../src/backends/tinker/tinker-backend.js';
import type { TinkerSpec } from '../../../src/backends/tinker/tinker-spec.js';
import { PROJECTIONS } from '../../../src/contract/architecture.js';
import type { WeightsSpec } from '../../../src/contract/weights-spec.js';
import { nodeHost } from '../../../src/platform/node-host.js';
import type { FakeOptions } from './options.js';
import { TinkerFake } from './server.js';

export const adapterOn = (directory: string, seed = 1, rank = 2): WeightsSpec => ({
  type: 'adapter',
  base: { type: 'directory', directory },
  adapter: { rank, alpha: rank, targets: PROJECTIONS },
  seed,
});

/** Profiles are named where a test is not about finding them out. */
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
