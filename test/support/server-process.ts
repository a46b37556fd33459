/** A server as a process of its own, started and stopped by tests. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { messageOf } from '@drmas/engine/errors';
import { deadline, stopwatch, takesTime } from './time-and-chance.js';

/** Imports and compilation on a busy machine. */
const READY_TIMEOUT_MS = 5 * 60_000;
const LAST_LINES = 20;

export class ServerProcess {
  readonly #child: ChildProcess;
  readonly #output: string[] = [];

  constructor(program: string, words: readonly string[], environment: NodeJS.ProcessEnv) {
    this.#child = spawn(program, words, {
      detached: true, // a process group of its own, so that its children end with it
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, ...environment },
    });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.on('data', (data: Buffer) => {
        this.#output.push(...data.toString().trimEnd().split('\n'));
        this.#output.splice(0, this.#output.length - LAST_LINES);
      });
  }

  /** Its last lines. */
  get output(): string {
    return this.#output.join('\n');
  }

  /** Whether it has ended by itself. */
  get ended(): boolean {
    return this.#child.exitCode !== null;
  }

  /** Resolves when the server answers and `more` is done. Ends the server if it does not answer. */
  async ready(url: string, more: () => Promise<void> = async () => {}): Promise<void> {
    try {
      await this.#answers(url);
      await more();
    } catch (error) {
      await this.stop();
      throw new Error(`the server did not start: ${messageOf(error)}\n${this.output}`);
    }
  }

  async #answers(url: string): Promise<void> {
    const seconds = stopwatch();
    for (;;) {
      if (this.ended) throw new Error(`it ended with ${this.#child.exitCode}`);
      const up = await fetch(url, { signal: deadline(5_000) }).then(
        ({ ok }) => ok,
        () => false,
      );
      if (up) return;
      if (1000 * seconds() > READY_TIMEOUT_MS) throw new Error('it does not answer');
      await takesTime(200);
    }
  }

  /** Ends it and all that it started at once, as a crash would. */
  async stop(): Promise<void> {
    const { pid } = this.#child;
    if (pid === undefined || this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    process.kill(-pid, 'SIGKILL');
    await ended;
  }
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}
