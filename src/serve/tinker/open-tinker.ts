/** The embedded engine as a server that speaks the Tinker protocol. */
import { basename } from 'node:path';
import type { Hono } from 'hono';
import { EmbeddedBackend } from '../../backends/embedded/embedded-backend.js';
import { modelDirectory } from '../../backends/hub/model-directory.js';
import { RunError } from '../../core/errors.js';
import type { Host } from '../../core/host.js';
import { packageVersion } from '../../platform/package-version.js';
import { tinkerApp } from './tinker-app.js';
import { TinkerService } from './tinker-service.js';

export interface TinkerRequest {
  /** The directory of a model, or its name on a hub: what adapters adapt. */
  readonly model: string;
  /** The directory for weights that clients save. */
  readonly store: string;
  /** What clients must send as their key; undefined lets everybody ask. */
  readonly token?: string | undefined;
  /** Requests that are under way at once. */
  readonly most: number;
  /** Models at once. */
  readonly mostModels: number;
  /** Seconds without a sign of life after which a session has ended. */
  readonly idleSeconds: number;
}

/** A server's app. Whoever opened it disposes of it. */
export interface OpenTinker {
  readonly app: Hono;
  /** The names that clients may call the model by. */
  readonly names: readonly string[];
  /** Refuses further requests, and resolves when those that are under way are done. */
  drain(): Promise<void>;
  dispose(): Promise<void>;
}

/** @throws RunError, CheckpointError or HubError when there is no such model, or it cannot be read */
export async function openTinker(request: TinkerRequest, host: Host): Promise<OpenTinker> {
  const { model, store, token, most, mostModels, idleSeconds } = request;
  const { files, device, threads, notify, signal } = host;
  const directory = await modelDirectory(model, { signal, onProgress: notify });
  if (!(await files.exists(`${directory}/config.json`)))
    throw new RunError(`${model} is no model: it has no config.json`);
  // What was typed, the directory that it is, as other programs name it, and that directory's last part.
  const names = [...new Set([model, directory, basename(model)])];
  const backend = await EmbeddedBackend.start({ device, threads, files, onProgress: notify });
  try {
    // Weights that cannot be read are found now, not when the first client asks.
    await (await backend.open({ type: 'directory', directory }, 'frozen', model)).close();
    const bases = new Map(names.map((name) => [name, directory]));
    const service = new TinkerService({ backend, files, bases, store, mostModels, idleSeconds });
    const { app, drain } = tinkerApp({ service, token, most, version: packageVersion() });
    const dispose = async () => {
      service.close();
      await backend.dispose();
    };
    return { app, names, drain, dispose };
  } catch (error) {
    await backend.dispose();
    throw error;
  }
}
