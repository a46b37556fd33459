/** Adapters as servers describe them. */

import type { AdapterSettings, ProjectionName, WeightsSpec } from '@drmas/engine/contract';
import { BackendError } from '@drmas/engine/errors';
import type { RemoteModel, RemoteModelSpec } from './remote-model.js';
import type { TinkerSpec } from './tinker-spec.js';

const ATTENTION: readonly ProjectionName[] = ['q', 'k', 'v', 'o'];
const FEED_FORWARD: readonly ProjectionName[] = ['gate', 'up', 'down'];

/** An adapter on a model in a directory. */
export type ServedAdapter = Extract<WeightsSpec, { readonly type: 'adapter' }> & {
  readonly base: { readonly type: 'directory' };
};

/** @throws BackendError for weights that no server has */
export function requireAdapter(weights: WeightsSpec): ServedAdapter {
  if (weights.type === 'adapter' && weights.base.type === 'directory') return weights as ServedAdapter;
  throw new BackendError('a Tinker server trains only adapters on its own models, named by directory');
}

/** @throws BackendError if the targets are not all of attention's, all of the feed-forward block's, or both */
export function remoteSpec({ models }: Pick<TinkerSpec, 'models'>, weights: ServedAdapter): RemoteModelSpec {
  const { base, adapter, seed } = weights;
  const attention = covers(adapter, ATTENTION);
  const feedForward = covers(adapter, FEED_FORWARD);
  const { directory, name = directory } = base;
  return { baseModel: models[name] ?? name, rank: adapter.rank, alpha: adapter.alpha, seed, attention, feedForward };
}

function covers({ targets }: AdapterSettings, group: readonly ProjectionName[]): boolean {
  const covered = group.filter((name) => targets.includes(name));
  if (covered.length === 0 || covered.length === group.length) return covered.length > 0;
  throw new BackendError(
    `a Tinker server adapts ${group.join(', ')} together or not at all, got ${covered.join(', ')}`,
  );
}

/** @throws BackendError if the server lists its models, and this one is not in the list */
export function requireModel(models: readonly string[], name: string): void {
  if (models.length > 0 && !models.includes(name))
    throw new BackendError(
      `the server has no model '${name}'; it has ${models.join(', ')}. If the server has another name for the model, set tinker({ models: { '${name}': ... } })`,
    );
}

/** Warnings about an adapter's scale: the protocol has no field for alpha. */
export function scaleWarnings(policy: string, { alpha, rank }: AdapterSettings, model: RemoteModel): string[] {
  if (model.alpha === alpha) return [];
  const served =
    model.alpha === undefined
      ? `the server chooses LoRA's alpha and does not report it; the recipe's ${alpha} is not sent`
      : `the server gives LoRA's alpha as ${model.alpha}, not the recipe's ${alpha}`;
  return [`policy '${policy}': ${served}. The output of the adapter of rank ${rank} is scaled by alpha / rank`];
}
