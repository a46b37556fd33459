/**
 * The recipe `search` with the paper's rules: the answerer acts only after a "yes", an unreadable verdict counts as
 * one, and a query without results leaves no trace.
 */
import { defineRecipe, searchTeam } from 'drmas';
import search from '../../recipes/search/recipe.js';
import { encyclopediaSearch } from '../../recipes/search/world.js';

/** The same for every policy, so that the agents can share one too. */
const policy = { optimizer: { learningRate: 1e-3, beta2: 0.98 } };

export default defineRecipe({
  ...search.input,
  assign: 'separate',
  team: searchTeam({
    ...encyclopediaSearch,
    onLastTurn: 'fail',
    onUnreadableVerdict: 'answer',
    onNoResults: 'skip',
  }),
  policies: { verifier: policy, searcher: policy, answerer: policy },
});
