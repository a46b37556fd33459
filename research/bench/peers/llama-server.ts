/** llama.cpp's server as a peer: the weights of this engine, each client with a slot of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';

const READY_MS = 60_000;
const KEPT_STDERR = 2000;

export interface LlamaServerOptions {
  /** The path of the program. */
  readonly program: string;
  readonly threads: number;
  /** The most requests that are answered at once. */
  readonly slots: number;
  /** The tokens of a prompt and its answer. */
  readonly context: number;
}

export interface LlamaServer {
  /** The address that clients of OpenAI's API take. */
  readonly baseURL: string;
  readonly pid: number;
  stop(): Promise<void>;
}

/** Starts the server on a file of llama.cpp's format. @throws with its last words when it does not get ready */
export async function startLlamaServer(model: string, options: LlamaServerOptions): Promise<LlamaServer> {
  const { program, threads, slots, context } = options;
  const port = 20_000 + (process.pid % 20_000);
  const counts = ['-t', `${threads}`, '-tb', `${threads}`, '-np', `${slots}`, '-c', `${slots * context}`];
  const child = spawn(program, ['-m', model, '--host', '127.0.0.1', '--port', `${port}`, ...counts], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let stderr = '';
  let failed: Error | undefined;
  child.stderr.on('data', (data: Buffer) => {
    stderr = (stderr + data.toString()).slice(-KEPT_STDERR);
  });
  child.on('error', (error) => {
    failed = error;
  });
  const url = `http://127.0.0.1:${port}`;
  const deadline = performance.now() + READY_MS;
  while (!(await isWell(url))) {
    const over = failed !== undefined || child.exitCode !== null || performance.now() > deadline;
    if (over) {
      child.kill('SIGKILL');
      throw failed ?? new Error(`it did not get ready: ${stderr.trim().split('\n').slice(-3).join(' | ')}`);
    }
    await sleep(100);
  }
  return { baseURL: `${url}/v1`, pid: child.pid as number, stop: () => ended(child) };
}

const isWell = (url: string) =>
  fetch(`${url}/health`).then(
    ({ ok }) => ok,
    () => false,
  );

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = new Promise((resolve) => child.once('close', resolve));
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), 5000);
  await closed;
  clearTimeout(timer);
}
