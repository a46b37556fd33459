import { ArgumentError, BackendError, DeviceError, NonFiniteError } from '../../errors.js';
import type {
  EngineArguments,
  EngineMethod,
  EngineResult,
  FromWorker,
  PlainError,
  ToWorker,
} from './engine-protocol.js';

/** The kernels of an engine, for people and events. */
export interface EngineHardware {
  readonly kernels: string;
  readonly isa: string;
  readonly threads: number;
  /** One line for the user if faster kernels were wanted but could not be loaded. */
  readonly notice: string | undefined;
  /** Whether the engine reads the weights of bases from files by itself. */
  readonly readsFiles?: boolean;
}

interface Pending {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

export const errorOf = ({ name, message, reason }: PlainError): Error => {
  if (reason !== undefined) return new DeviceError(reason, message);
  if (name === 'NonFiniteError') return new NonFiniteError(message);
  return name === 'ArgumentError' ? new ArgumentError(message) : new BackendError(message);
};

/** The connection to a ready engine: in a worker thread, or in a browser tab in this thread. */
export interface EngineLink {
  post(message: ToWorker, transfer: readonly ArrayBufferLike[]): void;
  /** Called once. `died` gets the reason if the engine ends by itself. */
  listen(receive: (message: FromWorker) => void, died: (error: Error) => void): void;
  /** Whether the engine keeps the process alive; at first it does not. */
  holdProcess(held: boolean): void;
  end(): Promise<unknown>;
}

/**
 * The engine's client in the calling thread. Calls return promises; they all reject if the engine dies. The engine
 * keeps the process alive only while a call waits for its answer.
 */
export class EngineThread {
  readonly hardware: EngineHardware;
  readonly #link: EngineLink;
  readonly #pending = new Map<number, Pending>();
  #nextId = 0;
  #awaited = 0;
  #dead: Error | undefined;
  onMessage: (message: Extract<FromWorker, { type: 'streamed' | 'generated' | 'refused' }>) => void = () => {};
  onDeath: (error: Error) => void = () => {};

  constructor(link: EngineLink, hardware: EngineHardware) {
    this.#link = link;
    this.hardware = hardware;
    link.listen(
      (message) => this.#receive(message),
      (error) => this.#die(error),
    );
  }

  /** The reason why the thread ended; undefined while it runs. */
  get dead(): Error | undefined {
    return this.#dead;
  }

  call<M extends EngineMethod>(method: M, ...args: EngineArguments<M>): Promise<EngineResult<M>> {
    return this.callWith([], method, ...args);
  }

  /** `transfer`: buffers among the arguments that are transferred instead of copied. */
  callWith<M extends EngineMethod>(
    transfer: readonly ArrayBufferLike[],
    method: M,
    ...args: EngineArguments<M>
  ): Promise<EngineResult<M>> {
    if (this.#dead !== undefined) return Promise.reject(this.#dead);
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve: resolve as (value: unknown) => void, reject });
      this.expectAnswers(1);
      try {
        this.post({ type: 'call', id, method, args }, transfer);
      } catch (error) {
        this.#pending.delete(id); // an argument that cannot be cloned: no answer will come
        this.expectAnswers(-1);
        reject(error);
      }
    });
  }

  post(message: ToWorker, transfer: readonly ArrayBufferLike[] = []): void {
    if (this.#dead === undefined) this.#link.post(message, transfer);
  }

  /**
   * Counts the answers that callers wait for: one more, or one less with -1. After the engine was asked to end, no
   * answers are counted; `dispose` waits for its end.
   */
  expectAnswers(change: 1 | -1): void {
    if (this.#dead !== undefined) return;
    this.#awaited += change;
    if (this.#awaited === 0) this.#link.holdProcess(false);
    else if (this.#awaited === change) this.#link.holdProcess(true);
  }

  async dispose(): Promise<void> {
    if (this.#dead !== undefined) return;
    this.#die(new BackendError('the engine was disposed of'));
    // A running kernel is not awaited: its result is no longer needed.
    await this.#link.end();
  }

  #receive(message: FromWorker): void {
    const { type } = message;
    if (type === 'streamed' || type === 'generated' || type === 'refused') this.onMessage(message);
    if (type === 'failed') {
      this.#die(errorOf(message.error));
      void this.#link.end();
    }
    if (type !== 'answer') return;
    const pending = this.#pending.get(message.id);
    this.#pending.delete(message.id);
    this.expectAnswers(-1);
    if (message.error !== undefined) pending?.reject(errorOf(message.error));
    else pending?.resolve(message.value);
  }

  #die(error: Error): void {
    if (this.#dead !== undefined) return;
    this.#dead = error;
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
    this.onDeath(error);
  }
}
