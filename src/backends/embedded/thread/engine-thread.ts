import type { Worker } from 'node:worker_threads';
import { ArgumentError, BackendError, NonFiniteError } from '../../../core/errors.js';
import { startWorker } from '../../../tensor/start-worker.js';
import type {
  EngineArguments,
  EngineMethod,
  EngineResult,
  FromWorker,
  PlainError,
  ToWorker,
  WorkerSettings,
} from './engine-protocol.js';

/** What runs the mathematics, for people and events. */
export interface EngineHardware {
  readonly kernels: string;
  readonly isa: string;
  readonly threads: number;
  /** One line when something better could be had. */
  readonly notice: string | undefined;
}

interface Pending {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

const errorOf = ({ name, message }: PlainError): Error => {
  if (name === 'NonFiniteError') return new NonFiniteError(message);
  return name === 'ArgumentError' ? new ArgumentError(message) : new BackendError(message);
};

/** The engine's worker seen from the main thread: calls become promises, the thread's death rejects them all. */
export class EngineThread {
  readonly hardware: EngineHardware;
  readonly #worker: Worker;
  readonly #pending = new Map<number, Pending>();
  #nextId = 0;
  #dead: Error | undefined;
  onMessage: (message: Extract<FromWorker, { type: 'streamed' | 'generated' | 'refused' }>) => void = () => {};
  onDeath: (error: Error) => void = () => {};

  private constructor(worker: Worker, hardware: EngineHardware) {
    this.#worker = worker;
    this.hardware = hardware;
    worker.on('message', (message: FromWorker) => this.#receive(message));
    worker.on('error', (error) => this.#die(new BackendError(`the engine's thread failed: ${error.message}`)));
    worker.on('exit', (code) => this.#die(new BackendError(`the engine's thread ended with code ${code}`)));
  }

  /**
   * Starts the worker and waits until its kernels are ready (the first time on a machine they are compiled).
   * @throws BackendError or ArgumentError when it cannot start
   */
  static start(settings: WorkerSettings, onProgress?: (message: string) => void): Promise<EngineThread> {
    const worker = startWorker('./engine-worker', import.meta.url, settings);
    return new Promise((resolve, reject) => {
      const onMessage = (message: FromWorker) => {
        if (message.type === 'progress') onProgress?.(message.message);
        else if (message.type === 'failed') reject(errorOf(message.error));
        else if (message.type === 'ready') {
          worker.off('message', onMessage);
          worker.off('error', reject);
          worker.off('exit', onExit);
          const { kernels, isa, threads: used, notice } = message;
          resolve(new EngineThread(worker, { kernels, isa, threads: used, notice }));
        }
      };
      const onExit = (code: number) => reject(new BackendError(`the engine's thread ended at its start, code ${code}`));
      worker.on('message', onMessage);
      worker.once('error', reject);
      worker.once('exit', onExit);
    });
  }

  /** Why the thread is no more; undefined while it lives. */
  get dead(): Error | undefined {
    return this.#dead;
  }

  call<M extends EngineMethod>(method: M, ...args: EngineArguments<M>): Promise<EngineResult<M>> {
    return this.callWith([], method, ...args);
  }

  /** `transfer`: buffers among the arguments that are handed over instead of copied. */
  callWith<M extends EngineMethod>(
    transfer: readonly ArrayBufferLike[],
    method: M,
    ...args: EngineArguments<M>
  ): Promise<EngineResult<M>> {
    if (this.#dead !== undefined) return Promise.reject(this.#dead);
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve: resolve as (value: unknown) => void, reject });
      this.post({ type: 'call', id, method, args }, transfer);
    });
  }

  post(message: ToWorker, transfer: readonly ArrayBufferLike[] = []): void {
    if (this.#dead === undefined) this.#worker.postMessage(message, transfer as ArrayBuffer[]);
  }

  async dispose(): Promise<void> {
    if (this.#dead !== undefined) return;
    this.#die(new BackendError('the engine was disposed of'));
    // A kernel that is running is not waited for: nothing it computes is wanted any more.
    await this.#worker.terminate();
  }

  #receive(message: FromWorker): void {
    const { type } = message;
    if (type === 'streamed' || type === 'generated' || type === 'refused') this.onMessage(message);
    if (type !== 'answer') return;
    const pending = this.#pending.get(message.id);
    this.#pending.delete(message.id);
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
