/** Door of `runs`: the composition root: the lists that recipes choose from. */
export { resolveRecipe } from './composition/resolve-recipe.js';
export { standard } from './composition/standard.js';
