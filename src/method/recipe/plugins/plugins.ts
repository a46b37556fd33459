/** The plug-ins of a recipe: estimators, losses, backends and trackers of a user, in the recipe's `use`. */

import type { BackendPlugin } from '@drmas/engine/backends';
import { isObject, RecipeError, shown } from '@drmas/engine/errors';
import type { TrackerPlugin } from '@drmas/engine/host';
import type { KnownLoss, LossPlugin } from '@drmas/engine/loss';
import type { z } from 'zod';
import type { EstimatorDeclaration } from '../../advantage/define-estimator.js';
import { type Lists, typeOf } from '../lists.js';

/** A plug-in in a recipe's `use`. */
export type Plugin = EstimatorDeclaration | LossPlugin | BackendPlugin | TrackerPlugin;

export interface LoadedLosses extends LossPlugin {
  readonly losses: readonly KnownLoss[];
}

const EXPECTED = 'what defineEstimator, lossFrom, defineTracker or defineBackend returns';

/**
 * @param use The recipe's `use` as it is written
 * @throws RecipeError with the entry, such as `use[2]`, that is not a plug-in or whose name is taken
 */
export function withPlugins(lists: Lists, use: unknown): Lists {
  if (use === undefined) return lists;
  if (!Array.isArray(use)) throw new RecipeError(`expected a list of plug-ins, got ${shown(use)}`, 'use');
  return use.reduce((added: Lists, value: unknown, i) => withPlugin(lists, added, value, `use[${i}]`), lists);
}

/** The lists with one more plug-in. `standard` are the lists without plug-ins. */
function withPlugin(standard: Lists, lists: Lists, value: unknown, at: string): Lists {
  const plugin = requirePlugin(value, at);
  const requireNew = (name: string, shipped: readonly string[], all: readonly string[]) => {
    if (shipped.includes(name))
      throw new RecipeError(`drmas has the ${plugin.kind} '${name}' itself; expected another name`, at);
    if (all.includes(name))
      throw new RecipeError(`an entry before it is the ${plugin.kind} '${name}' too; expected another name`, at);
  };
  switch (plugin.kind) {
    case 'estimator':
      requireNew(plugin.type, standard.estimators.map(typeOf), lists.estimators.map(typeOf));
      return { ...lists, estimators: [...lists.estimators, plugin] };
    case 'loss': {
      const { losses } = plugin as LoadedLosses;
      for (const { declaration } of losses)
        requireNew(declaration.type, standard.losses.map(typeOf), lists.losses.map(typeOf));
      return {
        ...lists,
        losses: [...lists.losses, ...losses.map(({ declaration }) => declaration)],
        ownLosses: [...lists.ownLosses, ...losses],
      };
    }
    case 'backend':
      requireNew(typeOf(plugin), standard.backends.map(typeOf), lists.backends.map(typeOf));
      return { ...lists, backends: [...lists.backends, plugin] };
    case 'tracker': {
      const names = (trackers: readonly { readonly name: string }[]) => trackers.map(({ name }) => name);
      requireNew(plugin.name, names(standard.trackers), names(lists.ownTrackers));
      return { ...lists, ownTrackers: [...lists.ownTrackers, plugin] };
    }
  }
}

/** @throws RecipeError at the path unless the value is a plug-in */
function requirePlugin(value: unknown, at: string): Plugin {
  if (value instanceof Promise)
    throw new RecipeError(`expected ${EXPECTED}, got a promise; write \`await\` before it`, at);
  if (!isObject(value)) throw new RecipeError(`expected ${EXPECTED}, got ${shown(value)}`, at);
  switch (value.kind) {
    case 'estimator':
    case 'backend':
      requireSchema(value.schema, value.kind, at);
      break;
    case 'tracker':
      requireTracker(value, at);
      break;
    case 'loss':
      requireLosses(value, at);
      break;
    default:
      throw new RecipeError(`expected ${EXPECTED}, got ${shown(value)}`, at);
  }
  return value as unknown as Plugin;
}

const isSchema = (value: unknown): boolean => isObject(value) && '_zod' in value;

/**
 * @throws RecipeError unless the value is an object schema of zod 4 with a `type`, whose settings are such schemas too
 */
function requireSchema(schema: unknown, kind: string, at: string): void {
  const shape = isSchema(schema) ? (schema as z.ZodObject).shape : undefined;
  if (shape === undefined)
    throw new RecipeError(`the ${kind} has no schema: expected an object of zod 4, got ${shown(schema)}`, at);
  for (const [key, setting] of Object.entries(shape))
    if (!isSchema(setting))
      throw new RecipeError(`the setting '${key}' of the ${kind} is no schema of zod 4: ${shown(setting)}`, at);
  if (typeOf({ schema: schema as z.ZodObject }) === '') throw new RecipeError(`the ${kind} has no \`type\``, at);
}

function requireLosses({ module, losses }: Readonly<Record<string, unknown>>, at: string): void {
  if (typeof module !== 'string')
    throw new RecipeError("a loss is named by its module: expected lossFrom(import.meta.resolve('./my-loss.ts'))", at);
  if (!Array.isArray(losses)) throw new RecipeError(`the module ${module} is not loaded; \`loadRecipe\` loads it`, at);
  for (const { declaration } of losses as readonly KnownLoss[]) requireSchema(declaration.schema, 'loss', at);
}

function requireTracker({ name, address, open }: Readonly<Record<string, unknown>>, at: string): void {
  if (typeof name !== 'string' || name === '' || typeof open !== 'function')
    throw new RecipeError('a tracker needs a `name` and a function `open`', at);
  if (address !== 'none')
    throw new RecipeError(`the tracker '${name}' of a recipe has no address: expected address 'none'`, at);
}
