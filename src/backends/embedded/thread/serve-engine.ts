import { macrotask } from '../../../platform/macrotask.js';
import type { Kernels } from '../../../tensor/kernels.js';
import { Engine } from './engine.js';
import type { FromWorker, PlainError, StreamedToken, ToWorker, WorkerSettings } from './engine-protocol.js';
import { buffersOf, HandedOver } from './handed-over.js';

/** The way from the engine to those who ask it; `transfer` holds buffers that are handed over instead of copied. */
export type Send = (message: FromWorker, transfer?: readonly ArrayBuffer[]) => void;

export const plainError = (error: unknown): PlainError =>
  error instanceof Error ? { name: error.name, message: error.message } : { name: 'Error', message: String(error) };

/**
 * An engine that answers messages, and ticks its samplers while there is anything to sample. It says that it is ready
 * first.
 * @returns What takes the messages
 */
export function serveEngine(
  kernels: Kernels,
  send: Send,
  { notice, ...options }: Omit<WorkerSettings, 'threads'> & { readonly notice?: string | undefined } = {},
): (message: ToWorker) => void {
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
    macrotask(tick);
  };

  send({ type: 'ready', kernels: kernels.name, isa: kernels.isa, threads: kernels.threads, notice });
  return (message) => {
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
          send({ type: 'answer', id: message.id, error: plainError(error) });
        }
        break;
      case 'generate':
        for (const { id, policy, request, streamed: isStreamed } of message.requests) {
          try {
            const onToken = (token: number) => void streamed.push({ id, token });
            engine.submit(id, policy, request, isStreamed ? onToken : undefined);
          } catch (error) {
            send({ type: 'refused', id, error: plainError(error) });
          }
        }
        break;
      case 'cancel':
        for (const id of message.ids) engine.cancel(id);
        break;
    }
    schedule();
  };
}
