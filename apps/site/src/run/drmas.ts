/** The exports of 'drmas' that the recipe `repair` and its world import, without the rest of the package. */
export { ArgumentError } from '../../../../src/base/errors.js';
export { permutation, RandomStream } from '../../../../src/base/math.js';
export { assistant, type Split, type TaskSource, type Trace, user } from '../../../../src/base/nouns.js';
export { tinyDecoder } from '../../../../src/engine/model.js';
export { defineRecipe } from '../../../../src/method/recipe.js';
export { agent, defineTeam } from '../../../../src/teams/index.js';
export { checkedOptions, isHeldOut } from '../../../../src/teams/tasks.js';
