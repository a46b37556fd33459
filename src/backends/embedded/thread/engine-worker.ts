/** The engine's thread: answers calls, and ticks the samplers while there is anything to sample. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { selectKernels } from '../../../tensor/select.js';
import { Engine } from './engine.js';
import type { FromWorker, PlainError, StreamedToken, ToWorker, WorkerSettings } from './engine-protocol.js';
import { buffersOf, HandedOver } from './handed-over.js';

const plain = (error: unknown): PlainError =>
  error instanceof Error ? { name: error.name, message: error.message } : { name: 'Error', message: String(error) };

async function main(port: MessagePort, { threads, ...options }: WorkerSettings): Promise<void> {
  const send = (message: FromWorker, transfer: readonly ArrayBuffer[] = []) => port.postMessage(message, transfer);
  const { kernels, notice } = await selectKernels({
    threads,
    onProgress: (message) => send({ type: 'progress', message }),
  });
  const engine = new Engine(kernels, options);
  let ticking = false;
  /** The tokens of streamed requests in this tick. */
  let streamed: StreamedToken[] = [];

  const tick = () => {
    ticking = false;
    if (!engine.busy) return;
    const results = engine.tick();
    if (streamed.length > 0) send({ type: 'streamed', tokens: streamed });
    streamed = [];
    if (results.length > 0) send({ type: 'generated', results });
    schedule();
  };
  // One tick an event-loop turn, so that requests and calls that arrive meanwhile are seen.
  const schedule = () => {
    if (ticking || !engine.busy) return;
    ticking = true;
    setImmediate(tick);
  };

  port.on('message', (message: ToWorker) => {
    switch (message.type) {
      case 'call':
        try {
          const method = engine[message.method] as (...args: readonly unknown[]) => unknown;
          const result = method.apply(engine, [...message.args]);
          const { id } = message;
          if (result instanceof HandedOver) {
            const { value } = result;
            send({ type: 'answer', id, value }, buffersOf(value));
          } else send({ type: 'answer', id, value: result });
        } catch (error) {
          send({ type: 'answer', id: message.id, error: plain(error) });
        }
        break;
      case 'generate':
        for (const { id, policy, request, streamed: isStreamed } of message.requests) {
          try {
            const onToken = (token: number) => void streamed.push({ id, token });
            engine.submit(id, policy, request, isStreamed ? onToken : undefined);
          } catch (error) {
            send({ type: 'refused', id, error: plain(error) });
          }
        }
        break;
      case 'cancel':
        for (const id of message.ids) engine.cancel(id);
        break;
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
