import { join } from 'node:path';
import type { ModelHandle, OwnWeights, PolicyHandle, WeightsSpec } from '@drmas/engine/contract';
import { backendNamed, type OpenRun } from '../../../method/index.js';
import { type Assignment, inPrecisionOf, type Recipe, withAgentAdapters } from '../../../method/recipe.js';
import type { Checkpoint } from '../../../method/store.js';

/** The weights of the models in a checkpoint: as they were saved, on their original bases. */
export function savedWeights(
  policies: Recipe['policies'],
  { directory }: Checkpoint,
  { warmStarted }: Assignment,
  first: OpenRun['weights'],
): OpenRun['weights'] {
  return Object.fromEntries(
    warmStarted.map((assigned): [string, WeightsSpec] => {
      const { name } = assigned;
      const [place, spec] = [join(directory, name), first[name]];
      const saved: OwnWeights =
        spec?.type !== 'adapter' && spec?.type !== 'saved-adapter'
          ? { type: 'directory', directory: place }
          : { type: 'saved-adapter', base: spec.base, directory: place };
      return [name, withAgentAdapters(policies, assigned, inPrecisionOf(policies, name, saved))];
    }),
  );
}

/**
 * Opens every model in its role. A frozen model that takes part in the warm start is a policy until reinforcement
 * begins.
 */
export async function openModels(
  backends: OpenRun['backends'],
  { models, warmStarted }: Assignment,
  weights: OpenRun['weights'],
): Promise<Pick<OpenRun, 'models'> & { readonly policies: Readonly<Record<string, PolicyHandle>> }> {
  const policies: Record<string, PolicyHandle> = {};
  const opened = await Promise.all(
    models.map(async (speaker): Promise<[string, ModelHandle]> => {
      const { name } = speaker;
      const spec = weights[name] as WeightsSpec;
      const backend = backendNamed({ backends }, name);
      if (!warmStarted.includes(speaker)) return [name, await backend.open(spec, 'frozen', name)];
      const policy = await backend.open(spec, 'policy', name);
      policies[name] = policy;
      return [name, policy];
    }),
  );
  return { models: Object.fromEntries(opened), policies };
}
