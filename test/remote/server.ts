/** SkyRL's server on this machine's CPU, started and stopped. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cacheDirectory } from '@drmas/engine/platform';
import { freePort, ServerProcess } from '../support/server-process.js';
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

export class SkyrlServer {
  readonly url: string;
  readonly #process: ServerProcess;

  private constructor(url: string, server: ServerProcess) {
    this.url = url;
    this.#process = server;
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
    const serve = fileURLToPath(new URL('serve.py', import.meta.url));
    const server = new ServerProcess(python, [serve, 'api', ...words], {
      HF_HUB_OFFLINE: '1',
      JAX_PLATFORMS: 'cpu',
      JAX_COMPILATION_CACHE_DIR: compiled,
      JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS: '0',
      JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES: '-1',
    });
    const url = `http://127.0.0.1:${at}`;
    // The HTTP side answers before the engine does: a model that is made and given back shows that both are there.
    await server.ready(`${url}/api/v1/healthz`, async () => {
      const wire = await Wire.open(url);
      const model_id = await wire.createModel({ rank: 1, seed: 0 });
      await wire.finish(await wire.post('unload_model', { model_id }));
    });
    return new SkyrlServer(url, server);
  }

  /** Ends the server and its engine at once, as a crash would. */
  stop(): Promise<void> {
    return this.#process.stop();
  }
}
