/** Door of `runs`: the composition root: the lists that recipes choose from. */
export { type Estimator, estimateAdvantages } from './composition/estimate-advantages.js';
export { resolveRecipe } from './composition/resolve-recipe.js';
export { standard } from './composition/standard.js';
