/** The backends of a run: the backend of the recipe, and the backends of single policies. */

import type { BackendDeclaration, OpenOptions } from '@drmas/engine/backends';
import { type Backend, backendIdentity, type WeightsSpec } from '@drmas/engine/contract';
import type { SamplerSpec } from '@drmas/engine/endpoints';
import { DeviceError } from '@drmas/engine/errors';
import type { Host } from '@drmas/engine/host';
import { SampledBackend } from '@drmas/engine/node';
import {
  type BackendSpec,
  backendOf,
  backendOfModel,
  type Recipe,
  samplerOfModel,
  serverKeyOf,
} from '../../../method/recipe.js';

/** Starts a backend. The caller disposes of it. */
export type OpenBackend = (spec: BackendSpec, options: OpenOptions) => Promise<Backend>;

/** A model, its backend, and the engine that samples it instead of the backend, if there is one. */
export interface ModelPlace {
  readonly name: string;
  readonly backend: BackendSpec;
  readonly row: BackendDeclaration;
  readonly sampler: SamplerSpec | undefined;
}

export function modelPlaces(
  recipe: Pick<Recipe, 'backend' | 'sampler' | 'policies' | 'assign' | 'lists'>,
  names: readonly string[],
): ModelPlace[] {
  return names.map((name) => {
    const backend = backendOfModel(recipe, name);
    return { name, backend, row: backendOf(recipe, backend), sampler: samplerOfModel(recipe, name) };
  });
}

export interface BackendModels {
  readonly spec: BackendSpec;
  readonly row: BackendDeclaration;
  readonly names: readonly string[];
}

/** Equal descriptions are one backend. */
export function modelsByBackend(models: readonly ModelPlace[]): BackendModels[] {
  const groups = new Map<string, BackendModels & { readonly names: string[] }>();
  for (const { name, backend: spec, row } of models) {
    const key = backendIdentity(spec);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { spec, row, names: [name] });
    else group.names.push(name);
  }
  return [...groups.values()];
}

/**
 * Starts the backends of all models, or none of them. The caller disposes of the backends.
 * @param weights The first weights of each model, by its name
 * @returns The backend of each model, by the model's name
 * @throws BackendError
 */
export async function openBackends(
  models: readonly ModelPlace[],
  weights: Readonly<Record<string, WeightsSpec>>,
  host: Host,
  openBackend?: OpenBackend,
): Promise<Readonly<Record<string, Backend>>> {
  const groups = modelsByBackend(models);
  const weightsOf = (names: readonly string[]) => names.map((name) => weights[name] as WeightsSpec);
  const started = await Promise.allSettled(
    groups.map(async ({ spec, row, names }) => {
      try {
        return await (openBackend ?? row.open)(spec, { host, models: weightsOf(names) });
      } catch (error) {
        if (groups.length === 1 || !(error instanceof DeviceError)) throw error;
        throw new DeviceError(error.reason, `${names.join(', ')}: ${error.message}`);
      }
    }),
  );
  const failed = started.find((each) => each.status === 'rejected');
  const backends = started.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  try {
    if (failed !== undefined) throw failed.reason;
    const all = groups.map(async ({ spec, row, names }, i): Promise<[string, Backend][]> => {
      const trainer = backends[i] as Backend;
      const trained = names.map((name): [string, Backend] => [name, trainer]);
      const sampled = samplersOf(models.filter(({ name }) => names.includes(name)));
      const engines = await Promise.all(
        sampled.map(async ({ sampler, names }) => {
          const options = { host, row, trainerKey: serverKeyOf(spec), weights: weightsOf(names) };
          const engine = await SampledBackend.connect(trainer, sampler, options);
          return names.map((name): [string, Backend] => [name, engine]);
        }),
      );
      return [...trained, ...engines.flat()];
    });
    return Object.fromEntries((await Promise.all(all)).flat());
  } catch (error) {
    await Promise.all(backends.map((backend) => backend.dispose()));
    throw error;
  }
}

/** Models by the engines that sample them. Equal descriptions are one engine. */
function samplersOf(models: readonly ModelPlace[]) {
  const engines = new Map<string, { readonly sampler: SamplerSpec; readonly names: string[] }>();
  for (const { name, sampler } of models) {
    if (sampler === undefined) continue;
    const key = backendIdentity(sampler);
    engines.set(key, { sampler, names: [...(engines.get(key)?.names ?? []), name] });
  }
  return [...engines.values()];
}
