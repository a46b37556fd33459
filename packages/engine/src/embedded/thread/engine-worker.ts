/** The engine's thread: selects the kernels, or opens a GPU, and serves the engine on them. */
import { createHash } from 'node:crypto';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { importUserModule } from '../../platform.js';
import { selectEngineKernels } from '../../tensor/select.js';
import { END, type ToWorker, type WorkerSettings } from './engine-protocol.js';
import { plainError, type Send, serveEngine } from './serve-engine.js';

async function main(port: MessagePort, settings: WorkerSettings): Promise<void> {
  const { threads, device, kernels: named, precisions, loaded, ...options } = settings;
  const send: Send = (message, transfer) => port.postMessage(message, transfer);
  const { kernels, ...news } = await selectEngineKernels({
    threads,
    device,
    loaded,
    ...(precisions?.every((one) => one === 'float32') && { bfloat16Products: 'widened' }),
    ...(named === undefined ? {} : { environment: { ...process.env, DRMAS_KERNELS: named } }),
    onProgress: (message) => send({ type: 'progress', message }),
  });
  const startHash = () => createHash('sha256');
  const receive = serveEngine(kernels, send, { ...options, ...news, importModule: importUserModule, startHash });
  port.on('message', (message: ToWorker | typeof END) => {
    if (message !== END) return receive(message);
    kernels.dispose(); // whatever is computed fails, and nothing keeps the thread
    port.close();
  });
}

if (parentPort !== null) {
  const port = parentPort;
  const send: Send = (message) => port.postMessage(message);
  main(port, workerData as WorkerSettings).catch((error: unknown) => {
    send({ type: 'failed', error: plainError(error) });
    port.close();
  });
}
