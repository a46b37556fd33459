/** Imports the modules of the losses in a recipe's `use`. */
import { basename, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isObject, RecipeError } from '@drmas/engine/errors';
import { type LossPlugin, loadLosses } from '@drmas/engine/loss';
import { importUserModule } from '@drmas/engine/platform';
import type { RecipeDefinition } from '../define.js';
import type { LoadedLosses, Plugin } from './plugins.js';

/**
 * The definition with its loss modules imported. resolving needs them.
 * @param hashed The files of the run's code hash, which must contain each loss module. By default drmas does not check
 *   this
 * @throws RecipeError with the entry of `use` whose module cannot be loaded or is not part of the code hash
 */
export async function withLossModules(
  definition: RecipeDefinition,
  hashed?: ReadonlySet<string>,
): Promise<RecipeDefinition> {
  const use: unknown = definition.input.use; // a recipe in JavaScript may hold anything
  if (!Array.isArray(use) || !use.some(isLossPlugin)) return definition;
  const loaded = use.map((plugin: unknown, i) => (isLossPlugin(plugin) ? withLosses(plugin, i, hashed) : plugin));
  return { ...definition, input: { ...definition.input, use: (await Promise.all(loaded)) as readonly Plugin[] } };
}

const isLossPlugin = (value: unknown): value is LossPlugin =>
  isObject(value) && value.kind === 'loss' && typeof value.module === 'string';

async function withLosses(plugin: LossPlugin, i: number, hashed?: ReadonlySet<string>): Promise<LoadedLosses> {
  const at = `use[${i}]`;
  const file = fileURLToPath(plugin.module);
  try {
    const losses = await loadLosses(plugin, importUserModule);
    if (hashed === undefined || hashed.has(file) || file.includes(`${sep}node_modules${sep}`))
      return { ...plugin, losses };
  } catch (error) {
    if (error instanceof RecipeError) throw new RecipeError(error.message.replace(/^use: /, ''), at);
    throw error;
  }
  const call = `lossFrom(import.meta.resolve('./${basename(file)}'))`;
  throw new RecipeError(`${file} is not part of the run's code hash; write ${call}, with the path as plain text`, at);
}
