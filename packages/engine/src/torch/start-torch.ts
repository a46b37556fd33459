/** Starts the engine on PyTorch: a worker in Python that is a child of this process. */

import { isTorchProcessor } from '../contract/architecture.js';
import { EmbeddedBackend } from '../embedded/embedded-backend.js';
import type { EmbeddedOptions } from '../embedded/start-embedded.js';
import type { FromWorker } from '../embedded/thread/engine-protocol.js';
import { EngineThread } from '../embedded/thread/engine-thread.js';
import { BackendError } from '../errors.js';
import type { TorchDevice } from '../host.js';
import { findTorch, requireDevice } from './find-torch.js';
import { linkTo } from './torch-link.js';
import { TorchProcess } from './torch-process.js';
import { SIZES } from './torch-sizes.js';
import { workerProgram } from './worker-program.js';

export interface TorchOptions
  extends Pick<EmbeddedOptions, 'files' | 'precisions' | 'recompute' | 'signal' | 'onProgress'> {
  readonly device: TorchDevice;
}

/**
 * @throws DeviceError or BackendError when there is no Python with PyTorch, or PyTorch has no such device; the signal's
 *   reason when it fires
 */
export async function startTorch(options: TorchOptions): Promise<EmbeddedBackend> {
  const { device, files, precisions, recompute, signal, onProgress } = options;
  if (precisions?.includes('int8'))
    throw new BackendError(
      'the engine on PyTorch computes in float32 and bfloat16: expected another precision than int8',
    );
  signal?.throwIfAborted();
  const torch = await findTorch();
  requireDevice(torch, device);
  const onCard = device.startsWith('cuda');
  const { slots, rows } = SIZES[onCard ? 'card' : 'processor'];
  const onProcessor = isTorchProcessor(device);
  const name = onProcessor ? 'cpu' : device;
  const child = new TorchProcess({
    python: torch.python,
    program: [workerProgram(import.meta.url)],
    options: [
      ...['--device', name, '--threads', String(THREADS), '--slots', String(slots), '--rows', String(rows)],
      ...(recompute ? ['--recompute'] : []),
    ],
  });
  const { kernels, isa, threads: used } = await ready(child, signal);
  const hardware = { kernels, isa, threads: used, notice: undefined, readsFiles: true };
  const thread = new EngineThread(linkTo(child, onProgress), hardware);
  return new EmbeddedBackend(thread, files, {
    precisions: ['float32', 'bfloat16'],
    defaultPrecision: onProcessor ? 'float32' : 'bfloat16',
  });
}

/** Sums of several threads have other bits for other numbers of them, and `torch-cpu` is for tests. */
const THREADS = 1;

type Ready = Extract<FromWorker, { type: 'ready' }>;

async function ready(child: TorchProcess, signal: AbortSignal | undefined): Promise<Ready> {
  const onAbort = () => void child.end();
  signal?.addEventListener('abort', onAbort, { once: true });
  try {
    return await new Promise<Ready>((resolve, reject) => {
      child.onDeath = (error) => reject(signal?.aborted ? signal.reason : error);
      child.onFrame = ({ header }) => {
        const message = header as unknown as FromWorker;
        if (message.type === 'ready') resolve(message);
        else if (message.type === 'failed') reject(new BackendError(message.error.message));
      };
    });
  } finally {
    signal?.removeEventListener('abort', onAbort);
  }
}
