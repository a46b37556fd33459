/** The embedded engine as a server that speaks the Tinker protocol. */
import { basename } from 'node:path';
import { RunError } from '@drmas/engine/errors';
import { holdsModel, modelDirectory } from '@drmas/engine/formats';
import type { Host } from '@drmas/engine/host';
import { startEngine } from '@drmas/engine/node';
import { type GuardedApp, packageVersion } from '@drmas/engine/platform';
import { tinkerApp } from './tinker-app.js';
import { TinkerService, type TinkerServiceOptions } from './tinker-service.js';

const DISK = 10e9;

export interface TinkerRequest extends Pick<TinkerServiceOptions, 'mostModels' | 'idleSeconds'> {
  /** The directory of the base model, or its name on a hub. */
  readonly model: string;
  /** The directory for weights that clients save. */
  readonly store: string;
  /** The key that clients must send: they can change weights, and save and delete them. */
  readonly token: string;
  /** Names besides those of this machine that clients may reach the server under. */
  readonly allowedHosts?: readonly string[] | undefined;
  /** The most requests in progress. */
  readonly most: number;
  /** Bytes for the adapters and sampling sessions of clients. Default: half of the memory that is free at the start. */
  readonly memory?: number | undefined;
  /** Bytes for the weights that clients save, with what the store has already. Default: 10 GB. */
  readonly disk?: number | undefined;
}

/** A server's app. The caller disposes of it. */
export interface OpenTinker extends GuardedApp {
  /** The names that clients may call the model by. */
  readonly names: readonly string[];
  /** Refuses further requests, and resolves when the requests in progress have ended. */
  drain(): Promise<void>;
  dispose(): Promise<void>;
}

/** @throws RunError, CheckpointError or HubError if there is no such model, or it cannot be read */
export async function openTinker(request: TinkerRequest, host: Host): Promise<OpenTinker> {
  const { model, store, token, allowedHosts, most, mostModels, memory, disk = DISK, idleSeconds } = request;
  const { files, device, threads, notify, signal } = host;
  const directory = await modelDirectory(model, { signal, onProgress: notify });
  if (!(await holdsModel(files, directory)))
    throw new RunError(`${model} is not a model: it has no config.json, and is no GGUF file`);
  // The typed name, the directory itself, the name that other programs use, and the last part of the directory.
  const names = [...new Set([model, directory, basename(model)])];
  const backend = await startEngine({
    device,
    threads,
    files,
    onProgress: notify,
    precisions: ['float32'],
  });
  try {
    // Reports unreadable weights at the start instead of at the first request.
    const base = await backend.open({ type: 'directory', directory }, 'frozen', model);
    await base.close();
    const bases = new Map(names.map((name) => [name, directory]));
    const service = new TinkerService({
      backend,
      files,
      bases,
      base,
      store,
      disk,
      mostModels,
      idleSeconds,
      memory: memory ?? process.availableMemory() / 2,
    });
    const { app, guard, drain } = tinkerApp({ service, token, allowedHosts, most, version: packageVersion() });
    const dispose = async () => {
      service.sessions.close();
      await backend.dispose();
    };
    return { app, guard, names, drain, dispose };
  } catch (error) {
    await backend.dispose();
    throw error;
  }
}
