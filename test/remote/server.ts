/** SkyRL's server on this machine's CPU, started and stopped. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { messageOf } from '../../src/core/errors.js';
import { cacheDirectory } from '../../src/tensor/native/build-cache.js';
import { Wire } from './wire.js';

export interface ServerOptions {
  readonly python: string;
  /** The model's directory, which is its name too. */
  readonly model: string;
  /** Of database and checkpoints: a server that is started on the same one again knows them. */
  readonly directory: string;
  /** One of them is the server's own. */
  readonly adapters: number;
  readonly rank: number;
}

/** Imports and compilation on a busy machine. */
const READY_TIMEOUT_MS = 5 * 60_000;
const LAST_LINES = 20;

export class SkyrlServer {
  readonly url: string;
  readonly #child: ChildProcess;

  private constructor(url: string, child: ChildProcess) {
    this.url = url;
    this.#child = child;
  }

  /** Resolves when the engine has answered. */
  static async start({ python, model, directory, adapters, rank }: ServerOptions, port?: number): Promise<SkyrlServer> {
    await mkdir(directory, { recursive: true });
    const at = port ?? (await freePort());
    const flags = {
      host: '127.0.0.1',
      port: String(at),
      'base-model': model,
      backend: 'jax',
      'backend-config': JSON.stringify({
        max_lora_adapters: adapters,
        max_lora_rank: rank,
        // JAX compiles every shape anew, and how many requests meet in a batch is chance: these sizes leave a shape a
        // length.
        train_micro_batch_size: 1,
        sample_max_num_sequences: 16,
      }),
      'checkpoints-base': join(directory, 'checkpoints'),
      'database-url': `sqlite:///${join(directory, 'server.db')}`,
    };
    const words = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]);
    const compiled = join(cacheDirectory(), 'skyrl', 'compiled');
    const child = spawn(python, [new URL('serve.py', import.meta.url).pathname, 'api', ...words], {
      detached: true, // a process group of its own, so that the engine ends with it
      stdio: ['pipe', 'pipe', 'pipe'],
      env: {
        ...process.env,
        HF_HUB_OFFLINE: '1',
        JAX_PLATFORMS: 'cpu',
        JAX_COMPILATION_CACHE_DIR: compiled,
        JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS: '0',
        JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES: '-1',
      },
    });
    const output: string[] = [];
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (data: Buffer) => {
        output.push(...data.toString().trimEnd().split('\n'));
        output.splice(0, output.length - LAST_LINES);
      });
    const server = new SkyrlServer(`http://127.0.0.1:${at}`, child);
    try {
      await server.#ready();
    } catch (error) {
      await server.stop();
      throw new Error(`the server did not start: ${messageOf(error)}\n${output.join('\n')}`);
    }
    return server;
  }

  /** The HTTP side answers before the engine does: a model that is made and given back shows that both are there. */
  async #ready(): Promise<void> {
    const deadline = performance.now() + READY_TIMEOUT_MS;
    for (;;) {
      if (this.#child.exitCode !== null) throw new Error(`it ended with ${this.#child.exitCode}`);
      const up = await fetch(`${this.url}/api/v1/healthz`).then(
        ({ ok }) => ok,
        () => false,
      );
      if (up) break;
      if (performance.now() > deadline) throw new Error('it does not answer');
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    const wire = await Wire.open(this.url);
    const model_id = await wire.createModel({ rank: 1, seed: 0 });
    await wire.finish(await wire.post('unload_model', { model_id }));
  }

  /** Ends the server and its engine at once, as a crash would. */
  async stop(): Promise<void> {
    const { pid } = this.#child;
    if (pid === undefined || this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    process.kill(-pid, 'SIGKILL');
    await ended;
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}
