/** Door of `method`: recipes as files: loading, overrides, resolution, the hash of their code. */
export { type BackendSpec, backends } from './recipe/backend-registry.js';
export { localFiles } from './recipe/code-hash.js';
export { codeOf, type LoadedRecipe, loadRecipe, shippedRecipes } from './recipe/load-recipe.js';
export { overridesOf, parseOverride } from './recipe/overrides.js';
export { withLossModules } from './recipe/plugins/import-losses.js';
export { withoutRemoved } from './recipe/removed-settings.js';
export { type ResolveOptions, resolveWith } from './recipe/resolve.js';
