import { existsSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { startWorker as startFromSources } from '@drmas/engine/internal/base/platform/start-worker';
import { inject } from 'vitest';

const sources = fileURLToPath(new URL('../..', import.meta.url));

/**
 * Replaces the engine's base/platform/start-worker.ts in the tests: starts the module that test/compile-workers.ts
 * compiled, if there is one.
 */
export const startWorker: typeof startFromSources = (name, from, workerData, options) => {
  if (from === undefined) return startFromSources(name, from, workerData, options);
  const compiled = join(inject('compiledWorkers'), relative(sources, dirname(fileURLToPath(from))), `${name}.mjs`);
  if (!existsSync(compiled)) return startFromSources(name, from, workerData, options);
  // A loader costs each thread half a second: only tests of modules of users in TypeScript ask for one.
  const execArgv = process.env.DRMAS_TEST_LOADER === undefined ? [] : ['--import', process.env.DRMAS_TEST_LOADER];
  return new Worker(compiled, { ...options, workerData, execArgv });
};
