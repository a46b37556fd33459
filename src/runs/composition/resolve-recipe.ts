import { dirname, isAbsolute, resolve } from 'node:path';
import { type Recipe, type RecipeDefinition, type ResolveOptions, resolveWith } from '../../method/recipe.js';
import { standard } from './standard.js';

export type { ResolveOptions };

/**
 * Resolves a recipe with the standard lists and the recipe's plug-ins. Relative paths of models start at the folder of
 * the recipe's file, or at the working directory if it has none.
 * @throws RecipeError with the dotted path of the wrong value and the expected value
 */
export function resolveRecipe(definition: RecipeDefinition, options: ResolveOptions = {}): Recipe {
  const { source = '' } = options.code ?? {};
  const absolutePath = isAbsolute(source) ? (path: string) => resolve(dirname(source), path) : undefined;
  return resolveWith(standard, definition, { absolutePath, ...options });
}
