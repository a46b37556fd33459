/** The engine's thread: answers calls, and ticks the samplers while there is anything to sample. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { selectKernels } from '../../../tensor/select.js';
import { Engine } from './engine.js';
import type { EngineMethod, FromWorker, PlainError, ToWorker, WorkerSettings } from './engine-protocol.js';

const plain = (error: unknown): PlainError =>
  error instanceof Error ? { name: error.name, message: error.message } : { name: 'Error', message: String(error) };

/** Methods whose results are copies that nobody else holds: their buffers cross over without another copy. */
const HANDED_OVER: ReadonlySet<EngineMethod> = new Set<EngineMethod>([
  'logits',
  'exportState',
  'exportBase',
  'exportMerged',
  'exportCritic',
]);

function buffersOf(value: unknown): ArrayBuffer[] {
  if (value instanceof Float32Array) return [value.buffer as ArrayBuffer];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(buffersOf) : [];
}

async function main(port: MessagePort, { threads, ...options }: WorkerSettings): Promise<void> {
  const send = (message: FromWorker) => port.postMessage(message);
  const { kernels, notice } = await selectKernels({
    threads,
    onProgress: (message) => send({ type: 'progress', message }),
  });
  const engine = new Engine(kernels, options);
  let paused = false;
  let ticking = false;

  const tick = () => {
    ticking = false;
    if (paused || !engine.busy) return;
    const results = engine.tick();
    if (results.length > 0) send({ type: 'generated', results });
    schedule();
  };
  // One tick an event-loop turn, so that requests and calls that arrive meanwhile are seen.
  const schedule = () => {
    if (ticking || paused || !engine.busy) return;
    ticking = true;
    setImmediate(tick);
  };

  port.on('message', (message: ToWorker) => {
    switch (message.type) {
      case 'call':
        try {
          const method = engine[message.method] as (...args: readonly unknown[]) => unknown;
          const value = method.apply(engine, [...message.args]);
          const own = HANDED_OVER.has(message.method) ? buffersOf(value) : [];
          port.postMessage({ type: 'answer', id: message.id, value } satisfies FromWorker, own);
        } catch (error) {
          send({ type: 'answer', id: message.id, error: plain(error) });
        }
        break;
      case 'generate':
        for (const { id, request } of message.requests) {
          try {
            engine.submit(id, request);
          } catch (error) {
            send({ type: 'refused', id, error: plain(error) });
          }
        }
        break;
      case 'cancel':
        for (const id of message.ids) engine.cancel(id);
        break;
      case 'pause':
        paused = true;
        break;
      case 'resume':
        paused = false;
        break;
      case 'dispose':
        kernels.dispose();
        port.close();
        return;
    }
    schedule();
  });
  send({ type: 'ready', kernels: kernels.name, isa: kernels.isa, threads: kernels.threads, notice });
}

if (parentPort !== null) {
  const port = parentPort;
  main(port, workerData as WorkerSettings).catch((error: unknown) => {
    port.postMessage({ type: 'failed', error: plain(error) } satisfies FromWorker);
    port.close();
  });
}
