import { DeviceError } from '../../errors.js';
import { macrotask } from '../../host.js';
import type { DecoderOptions } from '../../model/decoder/decoder.js';
import type { Kernels } from '../../tensor/kernels.js';
import { Engine, type EngineFacilities } from './engine.js';
import type { FromWorker, PlainError, StreamedToken, ToWorker } from './engine-protocol.js';
import { buffersOf, Transferred } from './transferred.js';

/** Sends a message from the engine to its client; `transfer` holds buffers to transfer instead of copying. */
export type Send = (message: FromWorker, transfer?: readonly ArrayBuffer[]) => void;

export function plainError(error: unknown): PlainError {
  if (!(error instanceof Error)) return { name: 'Error', message: String(error) };
  const { name, message } = error;
  return error instanceof DeviceError ? { name, message, reason: error.reason } : { name, message };
}

/** The description of an engine's kernels. It includes a GPU's name, since each GPU computes its own bits. */
export const hardwareOf = ({ name, isa, adapter, threads }: Kernels) => ({
  kernels: name,
  isa: adapter === undefined ? isa : `${isa}, ${adapter}`,
  threads,
});

type KernelsNews = Pick<Extract<FromWorker, { type: 'ready' }>, 'notice' | 'addon'>;

/**
 * An engine that answers messages and ticks its samplers while there are requests. Its first message is `ready`. Calls
 * and ticks run one after another, so that the state does not change while one of them waits.
 * @returns The function that receives the messages
 */
export function serveEngine(
  kernels: Kernels,
  send: Send,
  { notice, addon, importModule, startHash, ...options }: DecoderOptions & EngineFacilities & KernelsNews = {},
): (message: ToWorker) => void {
  const engine = new Engine(kernels, options, { importModule, startHash });
  let ticking = false;
  let streamed: StreamedToken[] = [];

  let last: Promise<void> = Promise.resolve();
  const inOrder = (work: () => Promise<void>) => {
    last = last.then(work).catch((error: unknown) => send({ type: 'failed', error: plainError(error) }));
  };

  const tick = async () => {
    ticking = false;
    if (!engine.busy) return;
    const results = await engine.tick();
    if (streamed.length > 0) send({ type: 'streamed', tokens: streamed });
    streamed = [];
    if (results.length > 0) send({ type: 'generated', results });
    schedule();
  };
  // One tick per event-loop turn, so that new requests and calls are handled between ticks.
  const schedule = () => {
    if (ticking || !engine.busy) return;
    ticking = true;
    macrotask(() => inOrder(tick));
  };

  send({ type: 'ready', ...hardwareOf(kernels), notice, addon });
  const take = async (message: ToWorker) => {
    switch (message.type) {
      case 'call':
        try {
          const method = engine[message.method] as (...args: readonly unknown[]) => unknown;
          const result = await method.apply(engine, [...message.args]);
          const { id } = message;
          if (result instanceof Transferred) {
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
  return (message) => inOrder(() => take(message));
}
