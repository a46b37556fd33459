/** The exports of 'drmas' that the recipe `repair` and its world import, without the rest of the package. */
export { ArgumentError } from '@drmas/engine/errors';
export { permutation, RandomStream } from '@drmas/engine/math';
export { tinyDecoder } from '@drmas/engine/model';
export { assistant, type Split, type TaskSource, type Trace, user } from '@drmas/engine/nouns';
export { defineRecipe } from '../../../../src/method/recipe.js';
export { agent, defineTeam } from '../../../../src/teams/index.js';
export { checkedOptions, isHeldOut } from '../../../../src/teams/tasks.js';
