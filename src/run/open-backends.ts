/** The backends of a run: the one of the recipe, and those that policies name for themselves. */
import type { OpenOptions } from '../backends/backend-declaration.js';
import { type BackendSpec, backendIdentity, backendOf } from '../backends/registry.js';
import { SampledBackend } from '../backends/samplers/sampled-backend.js';
import type { SamplerSpec } from '../backends/samplers/sampler-spec.js';
import type { Backend } from '../contract/backend.js';
import type { WeightsSpec } from '../contract/weights-spec.js';
import type { Host } from '../core/host.js';
import { backendOfModel, type Recipe, samplerOfModel } from '../recipe/recipe.js';

/** Starts what holds models. The caller disposes of it. */
export type OpenBackend = (spec: BackendSpec, options: OpenOptions) => Promise<Backend>;

const openNamed: OpenBackend = (spec, options) => backendOf(spec).open(spec, options);

/** The names of models by the backend that is to hold them. Equal descriptions are one backend. */
export function modelsByBackend(
  recipe: Pick<Recipe, 'backend' | 'policies'>,
  models: readonly string[],
): { readonly spec: BackendSpec; readonly names: readonly string[] }[] {
  const groups = new Map<string, { readonly spec: BackendSpec; readonly names: string[] }>();
  for (const name of models) {
    const spec = backendOfModel(recipe, name);
    const key = backendIdentity(spec);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { spec, names: [name] });
    else group.names.push(name);
  }
  return [...groups.values()];
}

/**
 * Starts every backend that is to hold a model, all or none. The caller disposes of them.
 * @param weights The first weights of each model, by its name
 * @returns The backend of each model, by the model's name
 * @throws BackendError
 */
export async function openBackends(
  recipe: Recipe,
  weights: Readonly<Record<string, WeightsSpec>>,
  host: Host,
  open: OpenBackend = openNamed,
): Promise<Readonly<Record<string, Backend>>> {
  const groups = modelsByBackend(recipe, Object.keys(weights));
  const started = await Promise.allSettled(
    groups.map(({ spec, names }) => open(spec, { host, models: names.map((name) => weights[name] as WeightsSpec) })),
  );
  const failed = started.find((each) => each.status === 'rejected');
  const backends = started.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  try {
    if (failed !== undefined) throw failed.reason;
    const each = groups.map(({ spec, names }, i) =>
      withSamplers({ recipe, weights, host }, backends[i] as Backend, spec, names),
    );
    return Object.fromEntries((await Promise.all(each)).flat());
  } catch (error) {
    await Promise.all(backends.map((backend) => backend.dispose()));
    throw error;
  }
}

/** What is asked of backends before they are open. */
interface Planned {
  readonly recipe: Recipe;
  readonly weights: Readonly<Record<string, WeightsSpec>>;
  readonly host: Host;
}

/** The models of one backend, each on the engine that samples it. Equal descriptions are one engine. */
async function withSamplers(
  { recipe, weights, host }: Planned,
  trainer: Backend,
  spec: BackendSpec,
  names: readonly string[],
): Promise<(readonly [string, Backend])[]> {
  const engines = new Map<string, { readonly sampler: SamplerSpec; readonly names: string[] }>();
  for (const name of names) {
    const sampler = samplerOfModel(recipe, name);
    if (sampler === undefined) continue;
    const key = backendIdentity(sampler);
    engines.set(key, { sampler, names: [...(engines.get(key)?.names ?? []), name] });
  }
  const sampled = await Promise.all(
    Array.from(engines.values(), async ({ sampler, names: policies }) => {
      const options = { host, row: backendOf(spec), weights: policies.map((name) => weights[name] as WeightsSpec) };
      const backend = await SampledBackend.connect(trainer, sampler, options);
      return policies.map((name) => [name, backend] as const);
    }),
  );
  return [...names.map((name) => [name, trainer] as const), ...sampled.flat()];
}
