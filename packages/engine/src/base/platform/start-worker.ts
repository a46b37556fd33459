import { Worker, type WorkerOptions } from 'node:worker_threads';

/**
 * Starts a module beside `from` (an `import.meta.url`) in a separate thread; `name` has no extension.
 * From the sources (tests, development) it needs a loader for TypeScript, which `--import` does not give to workers.
 */
export function startWorker(name: string, from: string, workerData: unknown, options: WorkerOptions = {}): Worker {
  const sources = from.endsWith('.ts');
  const entry = new URL(`${name}${sources ? '.ts' : '.js'}`, from);
  return new Worker(sources ? withLoader(entry) : entry, { ...options, workerData, eval: sources });
}

/** The loader's absolute path: evaluated code looks for packages from the process's folder. */
function withLoader(entry: URL): string {
  const loader = JSON.stringify(import.meta.resolve('tsx/esm/api'));
  return `import(${loader}).then(({ register }) => (register(), import(${JSON.stringify(entry)})))`;
}
