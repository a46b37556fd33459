/** Door of `method`: recipes as files: loading, files of settings, the hash of their code. */
export { localFiles } from './recipe/code-hash.js';
export { codeOf, isRecipeFile, type LoadedRecipe, loadRecipe, shippedRecipes } from './recipe/load-recipe.js';
export { withLossModules } from './recipe/plugins/import-losses.js';
export { withoutRemoved } from './recipe/removed-settings.js';
export { overridesOf } from './recipe/settings-file.js';
