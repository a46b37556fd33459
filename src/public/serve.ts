/**
 * The names of `drmas/serve`: trained agents in production. A bundler follows this entry to few files: no command line,
 * no compiler, no optional package. The engine has a worker thread and native code, which no bundle can hold, so it is
 * loaded from the installed package at the first call.
 */
export type { LoadedPolicy } from '@drmas/engine/node';
export { boundFetch } from '../gateway/agents/openai.js';
export { type AnyLanguageModel, type TrainableOptions, trainable } from '../gateway/agents/trainable.js';
export type { TrainedAgents, TrainedAgentsOptions } from '../serve/models/trained-agents.js';

import Module from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type * as engine from '@drmas/engine/node';
import type { LoadedPolicy } from '@drmas/engine/node';
import type * as serving from '../serve/index.js';
import type { TrainedAgents, TrainedAgentsOptions } from '../serve/index.js';

/** The functions of the installed package that this module passes on. */
type Installed = Pick<typeof serving, 'trainedAgents'> & Pick<typeof engine, 'loadPolicy' | 'loadTokenizer'>;

/**
 * The installed package `drmas`, seen from this file, or from the working directory if this file is in a bundle whose
 * folder has no packages. The address is computed, so that no bundler follows it.
 * @throws Error if the package is not installed
 */
async function installed(): Promise<Installed> {
  const here: string | undefined = import.meta.url; // a bundle in CommonJS has none
  const places = [...(here?.startsWith('file:') ? [here] : []), pathToFileURL(join(process.cwd(), 'index.js')).href];
  const problems: unknown[] = [];
  for (const place of places) {
    let path: string;
    try {
      path = Module.createRequire(place).resolve('drmas'); // webpack replaces it if `createRequire` is imported
    } catch (problem) {
      problems.push(problem);
      continue;
    }
    return (await import(
      /* webpackIgnore: true */ /* turbopackIgnore: true */ /* @vite-ignore */ pathToFileURL(path).href
    )) as Installed;
  }
  throw new Error('the package drmas must be installed where the program runs: npm install drmas', { cause: problems });
}

/**
 * The trained agents of a run, or an exported agent, as models of AI SDK's interface. As `trainedAgents` of `drmas`, in
 * a form for bundlers: Next.js, Vite, esbuild. drmas must be installed where the bundle runs.
 *
 * @param from The directory of a run or of an exported agent
 * @example
 * ```ts
 * import { trainable, trainedAgents } from 'drmas/serve';
 *
 * const agents = trainedAgents('runs/shop');
 * export const buyer = trainable('buyer', { otherwise: agents.model('buyer') });
 * ```
 */
export function trainedAgents(from: string, options: TrainedAgentsOptions = {}): TrainedAgents {
  let opened: Promise<TrainedAgents> | undefined;
  const open = (): Promise<TrainedAgents> => {
    opened ??= installed().then((drmas) => drmas.trainedAgents(from, options));
    return opened;
  };
  const dispose = async () => (await open()).dispose(); // later calls reject, also if there was none before
  return {
    model: (agent) => ({
      specificationVersion: 'v3',
      provider: 'drmas',
      modelId: agent,
      supportedUrls: { '*/*': [/./] }, // the agent refuses images, which AI SDK would download first
      doGenerate: async (call) => (await open()).model(agent).doGenerate(call),
      doStream: async (call) => (await open()).model(agent).doStream(call),
    }),
    dispose,
    [Symbol.asyncDispose]: dispose,
  };
}

/**
 * Loads a model with its tokenizer, as `loadPolicy` of `drmas` does.
 * @param model A directory, or `org/name[@revision]` on a hub
 */
export async function loadPolicy(...[model, options]: Parameters<Installed['loadPolicy']>): Promise<LoadedPolicy> {
  return (await installed()).loadPolicy(model, options);
}

/**
 * Loads the tokenizer and chat template of a model, as `loadTokenizer` of `drmas` does.
 * @param model A directory, or `org/name[@revision]` on a hub
 */
export async function loadTokenizer(
  ...[model, options]: Parameters<Installed['loadTokenizer']>
): ReturnType<Installed['loadTokenizer']> {
  return (await installed()).loadTokenizer(model, options);
}
