import { EngineThread, type FromWorker, hardwareOf, serveEngine, type ToWorker } from '@drmas/engine/embedded';
import { type Files, macrotask } from '@drmas/engine/host';
import type { Kernels } from '@drmas/engine/kernels';

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

const refuse = (): never => {
  throw new Error('a browser tab has no files');
};

/** The files of a browser tab: only those that the page has fetched. */
export function tabFiles(fetched: ReadonlyMap<string, Uint8Array>): Files {
  const get = (path: string) => fetched.get(path) ?? refuse();
  return {
    readText: async (path) => new TextDecoder().decode(get(path)),
    size: async (path) => get(path).length,
    readBytes: async (path, from, length) => get(path).slice(from, from + length),
    write: async () => refuse(),
    append: refuse,
    flush: async () => refuse(),
    replace: async () => refuse(),
    makeDirectory: async () => refuse(),
    rename: async () => refuse(),
    remove: async () => refuse(),
    list: async () => [],
    exists: async (path) => fetched.has(path),
    modified: async () => refuse(),
    truncate: async () => refuse(),
    lock: async () => refuse(),
  };
}
