/**
 * The setup of the tests against a real server: the environment, a tiny model, and, once for all files, the server.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { pythonEnvironment } from '../support/python-environment.js';
import { writeTinyQwen3 } from './model.js';
import { SkyrlServer } from './server.js';

/** The only pin that is installed with its dependencies: builds for GPUs have more of them than builds for CPUs. */
const TORCH = 'torch==2.13.0';

export const skyrlEnvironment = {
  name: 'skyrl',
  requirements: new URL('requirements.txt', import.meta.url),
  further: [TORCH],
  what: "SkyRL's server (1.6 GB with a CPU build of torch)",
};

export interface Remote {
  readonly url: string;
  /** Of the tiny Qwen3 that the server holds. */
  readonly model: string;
  readonly python: string;
}

declare module 'vitest' {
  export interface ProvidedContext {
    /** The address of the server, or the reason why there is none. */
    remote: Remote | { readonly unavailable: string };
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const environment = await pythonEnvironment(skyrlEnvironment);
  if ('unavailable' in environment) {
    console.log(`SKIPPED: the tests against a real server, because ${environment.unavailable}`);
    project.provide('remote', environment);
    return async () => {};
  }
  const { python } = environment;
  const root = await mkdtemp(join(tmpdir(), 'drmas-remote-'));
  const model = join(root, 'tiny-qwen3');
  await writeTinyQwen3(model);
  const server = await SkyrlServer.start({ python, model, directory: join(root, 'server'), adapters: 8, rank: 8 });
  project.provide('remote', { url: server.url, model, python });
  return async () => {
    await server.stop();
    await rm(root, { recursive: true, force: true });
  };
}
