import { existsSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { inject } from 'vitest';
import { startWorker as startFromSources } from '../../src/tensor/start-worker.js';

const sources = fileURLToPath(new URL('../../src', import.meta.url));

/**
 * Takes the place of src/tensor/start-worker.ts in the tests: starts what test/compile-workers.ts made of the module,
 * where it made something of it.
 */
export const startWorker: typeof startFromSources = (name, from, workerData, options) => {
  const compiled = join(inject('compiledWorkers'), relative(sources, dirname(fileURLToPath(from))), `${name}.mjs`);
  if (!existsSync(compiled)) return startFromSources(name, from, workerData, options);
  return new Worker(compiled, { ...options, workerData });
};
