import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { inject } from 'vitest';
import type { startWorker as start } from '../../src/tensor/start-worker.js';

const sources = fileURLToPath(new URL('../../src', import.meta.url));

/**
 * Takes the place of src/tensor/start-worker.ts in the tests: starts what test/compile-workers.ts made of the module.
 */
export const startWorker: typeof start = (name, from, workerData) => {
  const compiled = join(inject('compiledWorkers'), relative(sources, dirname(fileURLToPath(from))), `${name}.mjs`);
  return new Worker(compiled, { workerData });
};
