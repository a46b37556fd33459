/**
 * A peer in a separate process: it gets ready, then repeats its work at each request, with one line of JSON for each.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Contestant, Work } from '../measure/interleave.js';

/**
 * The longest time to get ready, which includes compilation but no download; torch.compile takes minutes on a small
 * machine.
 */
const READY_MS = 15 * 60_000;
const KEPT_STDERR = 4000;

export interface PeerCommand {
  readonly name: string;
  readonly threads: number;
  readonly unit: string;
  readonly command: string;
  readonly args: readonly string[];
  /** The request that the peer reads as the first line on stdin. */
  readonly settings: unknown;
  readonly environment?: Readonly<Record<string, string>>;
}

export class Peer implements Contestant {
  readonly name: string;
  readonly threads: number;
  readonly unit: string;
  readonly pid: number;
  /** The peer's description of itself, such as its versions. */
  readonly about: Readonly<Record<string, unknown>>;
  readonly #process: ChildProcess;
  readonly #next: () => Promise<Record<string, unknown>>;

  private constructor(
    { name, threads, unit }: PeerCommand,
    process: ChildProcess,
    pid: number,
    about: Record<string, unknown>,
    next: () => Promise<Record<string, unknown>>,
  ) {
    this.name = name;
    this.threads = threads;
    this.unit = unit;
    this.pid = pid;
    this.about = about;
    this.#process = process;
    this.#next = next;
  }

  /** @throws an error with the last lines of the peer's stderr when it does not get ready */
  static async start(peer: PeerCommand): Promise<Peer> {
    const child = spawn(peer.command, peer.args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, ...peer.environment },
    });
    let stderr = '';
    child.stderr.on('data', (data: Buffer) => {
      stderr = (stderr + data.toString()).slice(-KEPT_STDERR);
    });
    const answers: Record<string, unknown>[] = [];
    const waiting: { resolve(answer: Record<string, unknown>): void; reject(error: Error): void }[] = [];
    let ended: Error | undefined;
    const end = (why: string) => {
      const lines = stderr.trim().split('\n').slice(-6).join(' | ');
      ended ??= new Error(lines === '' ? why : `${why}: ${lines}`);
      for (const { reject } of waiting.splice(0)) reject(ended);
    };
    child.on('error', (error) => end(error.message));
    child.on('close', (code, signal) => end(`it ended with ${signal ?? `code ${code}`}`));
    child.stdin.on('error', () => {}); // its end is reported by `close`
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (!line.startsWith('{')) return; // some libraries print greetings on stdout
      const answer = JSON.parse(line) as Record<string, unknown>;
      const first = waiting.shift();
      if (first === undefined) answers.push(answer);
      else first.resolve(answer);
    });
    const next = () =>
      new Promise<Record<string, unknown>>((resolve, reject) => {
        const answer = answers.shift();
        if (answer !== undefined) resolve(answer);
        else if (ended !== undefined) reject(ended);
        else waiting.push({ resolve, reject });
      });
    child.stdin.write(`${JSON.stringify(peer.settings)}\n`);
    const timer = setTimeout(() => child.kill('SIGKILL'), READY_MS);
    try {
      const about = await next();
      return new Peer(peer, child, child.pid as number, about, next);
    } finally {
      clearTimeout(timer);
    }
  }

  async repeat(): Promise<Work> {
    this.#process.stdin?.write('repeat\n');
    const { amount, seconds, ...details } = await this.#next();
    return { amount: Number(amount), seconds: Number(seconds), details: details as Record<string, number> };
  }

  abandon(): void {
    this.#process.kill('SIGKILL');
  }

  async stop(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const closed = new Promise((resolve) => this.#process.once('close', resolve));
    this.#process.stdin?.end();
    const timer = setTimeout(() => this.#process.kill('SIGKILL'), 5000);
    await closed;
    clearTimeout(timer);
  }
}
