/** Starts the engine of this package in a worker thread of this process. */
import type { Worker } from 'node:worker_threads';
import { BackendError } from '../errors.js';
import type { Files } from '../host.js';
import { cacheDirectory, startWorker } from '../platform.js';
import { engineDevice } from '../tensor/engine-device.js';
import { EmbeddedBackend } from './embedded-backend.js';
import { END, type FromWorker, type WorkerSettings } from './thread/engine-protocol.js';
import { type EngineLink, EngineThread, errorOf } from './thread/engine-thread.js';

export interface EmbeddedOptions
  extends Pick<WorkerSettings, 'threads' | 'device' | 'kernels' | 'precisions' | 'recompute'> {
  readonly files: Files;
  /** Ends the start of the engine. A started engine is not concerned. */
  readonly signal?: AbortSignal | undefined;
  /** Receives messages about slow work, such as compiling the kernels at the start. */
  readonly onProgress?: ((message: string) => void) | undefined;
}

/**
 * The addons that engines of this process have loaded. The search for a compiler, the hash of the sources and the look
 * at the processor take half of an engine's start, and the next engine of the same settings need not repeat them.
 */
const addons = new Map<string, string>();

function addonKey({ kernels, precisions, device }: WorkerSettings): string {
  const { CXX, PATH, DRMAS_KERNELS } = process.env;
  return JSON.stringify([kernels ?? DRMAS_KERNELS, precisions, device, CXX, PATH, cacheDirectory()]);
}

/** @throws BackendError or ArgumentError if the engine cannot start; the signal's reason when it fires */
export async function startEmbedded({
  files,
  signal,
  onProgress,
  ...options
}: EmbeddedOptions): Promise<EmbeddedBackend> {
  return new EmbeddedBackend(await startThread(options, { signal, onProgress }), files, {
    precisions: options.precisions,
  });
}

/**
 * Starts the worker and waits until its kernels are ready (the first time on a machine they are compiled).
 * @throws BackendError or ArgumentError when it cannot start; the signal's reason when it fires
 */
function startThread(
  settings: WorkerSettings,
  { signal, onProgress }: Pick<EmbeddedOptions, 'signal' | 'onProgress'>,
): Promise<EngineThread> {
  signal?.throwIfAborted();
  const key = addonKey(settings);
  const named = settings.kernels ?? process.env.DRMAS_KERNELS;
  const onGpu = engineDevice(settings.device, { DRMAS_KERNELS: named }) === 'gpu';
  const worker = startWorker('./thread/engine-worker', import.meta.url, { ...settings, loaded: addons.get(key) });
  return new Promise<EngineThread>((resolve, reject) => {
    const onAbort = () => {
      worker.off('message', onMessage);
      worker.off('exit', onExit);
      const stopped = () => reject(signal?.reason);
      if (onGpu) void endItself(worker, END_MS.starting).then(stopped);
      else {
        stopped();
        void worker.terminate();
      }
    };
    signal?.addEventListener('abort', onAbort, { once: true });
    const onMessage = (message: FromWorker) => {
      if (message.type === 'progress') onProgress?.(message.message);
      else if (message.type === 'failed') reject(errorOf(message.error));
      else if (message.type === 'ready') {
        worker.off('message', onMessage);
        worker.off('error', reject);
        worker.off('exit', onExit);
        signal?.removeEventListener('abort', onAbort);
        const { kernels, isa, threads: used, notice, addon } = message;
        if (addon !== undefined) addons.set(key, addon);
        resolve(new EngineThread(linkTo(worker, onGpu), { kernels, isa, threads: used, notice }));
      }
    };
    const onExit = (code: number) => reject(new BackendError(`the engine's thread ended at its start, code ${code}`));
    worker.on('message', onMessage);
    worker.once('error', reject);
    worker.once('exit', onExit);
  });
}

const linkTo = (worker: Worker, onGpu: boolean): EngineLink => ({
  post: (message, transfer) => worker.postMessage(message, transfer as ArrayBuffer[]),
  listen(receive, died) {
    worker.on('message', receive);
    worker.on('error', (error) => died(new BackendError(`the engine's thread failed: ${error.message}`)));
    worker.on('exit', (code) => died(new BackendError(`the engine's thread ended with code ${code}`)));
    worker.unref();
  },
  holdProcess: (held) => (held ? worker.ref() : worker.unref()),
  end: () => (onGpu ? endItself(worker, END_MS.running) : worker.terminate()),
});

/** The most time in which a thread on a GPU ends itself. While it starts it reads messages late. */
const END_MS = { running: 10_000, starting: 60_000 };

/** Dawn ends the whole process, with a report of a crash, if its thread is ended from outside while it computes. */
async function endItself(worker: Worker, withinMs: number): Promise<void> {
  const ended = new Promise((resolve) => worker.once('exit', resolve));
  const timer = setTimeout(() => void worker.terminate(), withinMs);
  worker.ref();
  worker.postMessage(END);
  await ended;
  clearTimeout(timer);
}
