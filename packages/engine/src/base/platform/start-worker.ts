import { existsSync } from 'node:fs';
import { Worker, type WorkerOptions } from 'node:worker_threads';
import { BackendError } from '../core/errors.js';
import { loaderUrl } from './user-modules.js';

/**
 * Starts a module beside `from` (an `import.meta.url`) in a separate thread; `name` has no extension.
 * From the sources (tests, development) it needs a loader for TypeScript, which `--import` does not give to workers.
 * @throws BackendError in a bundle, beside which the module is not
 */
export function startWorker(
  name: string,
  from: string | undefined, // undefined in a bundle that is CommonJS
  workerData: unknown,
  options: WorkerOptions = {},
): Worker {
  const sources = from?.endsWith('.ts') === true;
  const entry = from === undefined ? undefined : new URL(`${name}${sources ? '.ts' : '.js'}`, from);
  if (entry === undefined || !existsSync(entry))
    throw new BackendError(
      `${name}.js is not here, because a bundle has no threads of drmas in it. Keep drmas and @drmas/* out of the ` +
        'bundle (external), or import from drmas/serve',
    );
  return new Worker(sources ? withLoader(entry) : entry, { ...options, workerData, eval: sources });
}

/** The loader's absolute path: evaluated code looks for packages from the process's folder. */
function withLoader(entry: URL): string {
  const loader = JSON.stringify(loaderUrl());
  return `import(${loader}).then(({ register }) => (register(), import(${JSON.stringify(entry)})))`;
}
