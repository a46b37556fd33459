import type { FromWorker, ToWorker } from '../../../src/backends/embedded/thread/engine-protocol.js';
import { EngineThread } from '../../../src/backends/embedded/thread/engine-thread.js';
import { hardwareOf, serveEngine } from '../../../src/backends/embedded/thread/serve-engine.js';
import { macrotask } from '../../../src/platform/macrotask.js';
import type { Kernels } from '../../../src/tensor/kernels.js';

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
 * An engine in this thread, which is asked as one in another thread is. It computes nothing new while the gate is
 * closed.
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
