/** The engine on PyTorch behind the messages of an engine's thread. */

import type { EngineMethod, FromWorker, ToWorker } from '../embedded/thread/engine-protocol.js';
import type { EngineLink } from '../embedded/thread/engine-thread.js';
import { plainError } from '../embedded/thread/serve-engine.js';
import { TorchEngine } from './torch-engine.js';
import { arrayIn, type TorchProcess } from './torch-process.js';

/** Messages take effect one after another, as in the thread of the other engine. */
export function linkTo(child: TorchProcess, onProgress: (message: string) => void = () => {}): EngineLink {
  const engine = new TorchEngine(child);
  let receive: (message: FromWorker) => void = () => {};
  let last: Promise<unknown> = Promise.resolve();
  const call = async ({ id, method, args }: Extract<ToWorker, { type: 'call' }>) => {
    try {
      const run = engine[method as EngineMethod] as (...args: readonly unknown[]) => Promise<unknown>;
      receive({ type: 'answer', id, value: await run.apply(engine, [...args]) });
    } catch (error) {
      receive({ type: 'answer', id, error: plainError(error) });
    }
  };
  const generate = ({ requests }: Extract<ToWorker, { type: 'generate' }>) => {
    try {
      engine.generate(requests);
    } catch (error) {
      for (const { id } of requests) receive({ type: 'refused', id, error: plainError(error) });
    }
  };
  child.hold(false);
  return {
    post(message) {
      last = last.then(async () => {
        if (message.type === 'call') await call(message);
        else if (message.type === 'generate') generate(message);
        else child.send({ type: 'cancel', ids: message.ids });
      });
    },
    listen(receiver, died) {
      receive = receiver;
      child.onDeath = died;
      if (child.dead !== undefined) died(child.dead);
      child.onFrame = (frame) => {
        if (frame.header.type === 'progress') return onProgress(String(frame.header.message));
        if (frame.header.type !== 'generated') return receive(frame.header as unknown as FromWorker);
        let at = 0;
        const results = (frame.header.results as { readonly id: number; readonly length: number }[]).map(
          ({ length, ...result }) => {
            at += length;
            const of = (name: string) => Array.from(arrayIn(frame, name).subarray(at - length, at));
            return { ...result, tokens: of('tokens'), logprobs: of('logprobs') };
          },
        );
        receive({ type: 'generated', results } as unknown as FromWorker);
      };
    },
    holdProcess: (held) => child.hold(held),
    end: () => child.end(),
  };
}
