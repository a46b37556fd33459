import type { Recipe, RecipeDefinition } from '../../method/recipe.js';
import { type ResolveOptions, resolveWith } from '../../method/recipe-files.js';
import { standard } from './standard.js';

export type { ResolveOptions };

/**
 * Resolves a recipe with the standard lists and the recipe's plug-ins.
 * @throws RecipeError with the dotted path of the wrong value and the expected value
 */
export function resolveRecipe(definition: RecipeDefinition, options: ResolveOptions = {}): Recipe {
  return resolveWith(standard, definition, options);
}
