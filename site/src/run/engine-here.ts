import { macrotask } from '../../../src/base/async.js';
import { EngineThread, type FromWorker, hardwareOf, serveEngine, type ToWorker } from '../../../src/engine/backends.js';
import type { Kernels } from '../../../src/engine/tensor.js';

/** Holds messages to an engine back while it is closed. */
export class Gate {
  readonly #held: (() => void)[] = [];
  #closed = false;

  close(): void {
    this.#closed = true;
  }

  open(): void {
    this.#closed = false;
    for (const act of this.#held.splice(0)) act();
  }

  pass(act: () => void): void {
    if (this.#closed) this.#held.push(act);
    else act();
  }
}

/**
 * An engine in this thread, with the interface of an engine in another thread. It starts no new computation while the
 * gate is closed.
 */
export function engineHere(kernels: Kernels, gate: Gate): EngineThread {
  let take: (message: FromWorker) => void = () => {};
  const engine = serveEngine(kernels, (message) => macrotask(() => take(message)));
  const link = {
    post: (message: ToWorker) => gate.pass(() => macrotask(() => engine(message))),
    listen: (receive: (message: FromWorker) => void) => {
      take = receive;
    },
    holdProcess: () => {},
    end: async () => kernels.dispose(),
  };
  return new EngineThread(link, { ...hardwareOf(kernels), notice: undefined });
}
