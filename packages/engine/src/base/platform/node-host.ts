import { availableParallelism } from 'node:os';
import { systemClock } from '../core/clock.js';
import { ArgumentError } from '../core/errors.js';
import type { Host } from '../core/host.js';
import { nodeFiles } from './node-files.js';

export type HostOptions = { readonly [Part in keyof Host]?: Host[Part] | undefined };

/** More threads help no kernel. With WebAssembly kernels, each thread is also a worker of several megabytes. */
const MOST_THREADS = 256;

/**
 * This process as a host: one thread a core, the system's files and clock, a signal that never fires, and no protection
 * of work against interrupts. By default notices are dropped and warnings become notices.
 * @throws ArgumentError if the threads are not 1 to 256
 */
export function nodeHost(options: HostOptions = {}): Host {
  const { notify = () => {} } = options;
  return {
    threads: kernelThreads(options.threads),
    device: options.device,
    files: options.files ?? nodeFiles,
    clock: options.clock ?? systemClock,
    signal: options.signal ?? new AbortController().signal,
    protect: options.protect ?? ((work) => work()),
    notify,
    warn: options.warn ?? ((_, message) => notify(message)),
    listener: options.listener,
    shared: options.shared,
  };
}

/**
 * The threads of kernels: one a core by default, except `spare` ones.
 * @throws ArgumentError if the threads are not 1 to 256
 */
export function kernelThreads(threads?: number, spare = 0): number {
  const chosen = threads ?? Math.min(MOST_THREADS, Math.max(1, availableParallelism() - spare));
  if (!Number.isInteger(chosen) || chosen < 1 || chosen > MOST_THREADS)
    throw new ArgumentError(`threads: expected 1 to ${MOST_THREADS}, got ${chosen}`);
  return chosen;
}
