/** The contract that every backend keeps, kept by the client of a real server. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PROJECTIONS, type WeightsSpec } from '@drmas/engine/contract';
import { nodeHost } from '@drmas/engine/platform';
import { TinkerBackend } from '@drmas/tinker/internal/client/tinker-backend';
import { describe, inject } from 'vitest';
import { backendContract } from '../contracts/backend/index.js';

const remote = inject('remote');
const url = 'unavailable' in remote ? '' : remote.url;
const directory = 'unavailable' in remote ? '' : remote.model;
const weights = (seed = 1, rank = 4): WeightsSpec => ({
  type: 'adapter',
  base: { type: 'directory', directory },
  adapter: { rank, alpha: rank, targets: PROJECTIONS },
  seed,
});

describe.skipIf('unavailable' in remote)('on a real server', () => {
  backendContract('the client', {
    open: () =>
      TinkerBackend.connect(
        {
          type: 'tinker',
          url,
          profile: 'skyrl-jax',
          models: {},
          concurrency: 16,
          saveEvery: 1,
          deadlineSeconds: 300,
        },
        { host: nodeHost(), models: [weights()] },
      ),
    weights,
    misfit: weights(1, 8),
    digits: 3,
    learns: 0.02,
    freshForEachTest: true,
    mayStillAnswer: true,
    alwaysLoadsMoments: true,
    root: mkdtempSync(join(tmpdir(), 'drmas-remote-contract-')),
  });
});
