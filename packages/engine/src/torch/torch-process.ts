/** The worker in Python as a child process: calls and their answers, and questions within a call. */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Writable } from 'node:stream';
import type { PlainError } from '../embedded/thread/engine-protocol.js';
import { errorOf } from '../embedded/thread/engine-thread.js';
import { BackendError } from '../errors.js';
import { IMPORT_MS } from './find-torch.js';
import { type Arrays, type Frame, type FrameHeader, FrameReader, type NumberArray, writeFrame } from './frames.js';

export interface TorchCommand {
  readonly python: string;
  /** The words before the options: what Python runs. */
  readonly program: readonly string[];
  readonly options: readonly string[];
  /**
   * The worker is stuck if it has sent nothing for so long. Its reader answers pings while the engine computes. Time in
   * which this process stands still does not count.
   */
  readonly silentMs?: number;
}

export interface TorchAnswer {
  readonly value: Readonly<Record<string, unknown>>;
  readonly arrays: Arrays;
}

/**
 * Answers what the worker asks within a call: the slopes of a loss from the scores of a micro-batch. An error ends the
 * call, which adds no gradient.
 */
export type OnScores = (scores: Frame) => Arrays;

interface Pending {
  readonly resolve: (answer: TorchAnswer) => void;
  readonly reject: (error: unknown) => void;
  readonly onScores: OnScores | undefined;
  /** The error that `onScores` has thrown. */
  failed?: { readonly error: unknown };
}

/** An import, a compilation or a full disk keeps the reader of the worker from its turn. */
const SILENT_MS = IMPORT_MS;
/** Pings in the time after which a worker is stuck: it has answered none of so many. */
const PINGS = 6;

/** The last lines of what the worker printed, for the message about its end. */
const KEPT_TEXT = 2000;

export class TorchProcess {
  readonly #child: ChildProcess;
  readonly #input: Writable;
  readonly #pending = new Map<number, Pending>();
  readonly #pings: NodeJS.Timeout;
  readonly #silentMs: number;
  #nextId = 0;
  #printed = '';
  #unanswered = 0;
  #dead: Error | undefined;
  /** Receives all frames but answers and questions. */
  onFrame: (frame: Frame) => void = () => {};
  onDeath: (error: Error) => void = () => {};

  constructor({ python, program, options, silentMs = SILENT_MS }: TorchCommand) {
    this.#silentMs = silentMs;
    const child = spawn(python, [...program, ...options], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, PYTHONUNBUFFERED: '1' },
    });
    this.#child = child;
    this.#input = child.stdin;
    const reader = new FrameReader();
    child.stdout.on('data', (chunk: Buffer) => {
      this.#unanswered = 0;
      try {
        for (const frame of reader.take(chunk)) this.#take(frame);
      } catch (error) {
        this.#die(error instanceof Error ? error : new BackendError(String(error)));
        child.kill('SIGKILL');
      }
    });
    child.stderr.on('data', (chunk: Buffer) => {
      this.#printed = (this.#printed + chunk.toString()).slice(-KEPT_TEXT);
    });
    child.stdin.on('error', () => {}); // the process ended: `exit` tells why
    child.once('error', (error) => this.#die(new BackendError(`${python} cannot be started: ${error.message}`)));
    // `close` comes after the last words, `exit` may come before.
    child.once('close', (code, signal) => this.#die(new BackendError(this.#lastWords(code, signal))));
    this.#pings = setInterval(() => this.#ping(), silentMs / PINGS);
    this.#pings.unref();
  }

  /** The reason why the process ended; undefined while it runs. */
  get dead(): Error | undefined {
    return this.#dead;
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** @param onScores Answers the worker's questions within this call */
  call(method: string, args: object, arrays: Arrays = {}, onScores?: OnScores): Promise<TorchAnswer> {
    if (this.#dead !== undefined) return Promise.reject(this.#dead);
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject, onScores });
      try {
        this.send({ type: 'call', id, method, args }, arrays);
      } catch (error) {
        this.#pending.delete(id); // arguments that are no frame: no answer will come
        reject(error);
      }
    });
  }

  send(header: FrameHeader, arrays?: Arrays): void {
    if (this.#dead === undefined) writeFrame(this.#input, header, arrays);
  }

  /** Whether the worker keeps this process alive. */
  hold(held: boolean): void {
    const { stdin, stdout, stderr } = this.#child;
    for (const one of [this.#child, stdin, stdout, stderr] as unknown as { ref?(): void; unref?(): void }[])
      if (held) one?.ref?.();
      else one?.unref?.();
  }

  /** Ends the worker, whatever it computes. */
  async end(): Promise<void> {
    clearInterval(this.#pings);
    const { exitCode, signalCode, pid } = this.#child;
    if (pid === undefined || exitCode !== null || signalCode !== null) return;
    const closed = new Promise((resolve) => this.#child.once('close', resolve));
    this.hold(true);
    this.#child.kill('SIGKILL');
    await closed;
  }

  #ping(): void {
    if (this.#unanswered < PINGS) {
      this.#unanswered++;
      this.send({ type: 'ping' });
      return;
    }
    // Timers come before what waits in the pipe: after a stop of this process that may be an answer.
    setImmediate(() => {
      if (this.#unanswered < PINGS) return;
      this.#die(new BackendError(`the engine on PyTorch has not answered for ${this.#silentMs / 1000} s`));
      this.#child.kill('SIGKILL');
    });
  }

  #take(frame: Frame): void {
    const { header, arrays, missing } = frame;
    if (header.type === 'pong') return;
    if (missing !== undefined && header.type !== 'answer') throw new BackendError(missing);
    if (header.type === 'scores') this.#answerScores(frame);
    else if (header.type === 'answer') {
      const { id, value, error } = header as FrameHeader & {
        readonly id: number;
        readonly value?: TorchAnswer['value'];
        readonly error?: PlainError;
      };
      const pending = this.#pending.get(id);
      this.#pending.delete(id);
      if (error !== undefined) pending?.reject(pending.failed === undefined ? errorOf(error) : pending.failed.error);
      else if (missing !== undefined) pending?.reject(new BackendError(missing));
      else pending?.resolve({ value: value ?? {}, arrays });
    } else this.onFrame(frame);
  }

  #answerScores(frame: Frame): void {
    const [first] = this.#pending.values(); // calls are answered in order
    try {
      this.send({ type: 'slopes' }, first?.onScores?.(frame) ?? {});
    } catch (error) {
      if (first !== undefined) first.failed = { error };
      this.send({ type: 'slopes', failed: true });
    }
  }

  #lastWords(code: number | null, signal: NodeJS.Signals | null): string {
    const how = signal === null ? `code ${code}` : signal;
    const memory = signal === 'SIGKILL' ? ' (the system kills processes that take too much memory)' : '';
    const last = this.#printed.trim().split('\n').at(-1);
    return `the engine on PyTorch ended with ${how}${memory}${last ? `: ${last}` : ''}`;
  }

  #die(error: Error): void {
    if (this.#dead !== undefined) return;
    this.#dead = error;
    clearInterval(this.#pings);
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
    this.onDeath(error);
  }
}

export const arrayIn = <A extends NumberArray = Float32Array>({ arrays }: Pick<Frame, 'arrays'>, name: string): A =>
  arrays[name] as A;
