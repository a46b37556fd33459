/** The recipe `math` with the paper's reward: both agents earn the team's, and a second attempt costs nothing. */
import { defineRecipe, solverVerifier } from 'drmas';
import math from '../../recipes/math/recipe.js';

export default defineRecipe({
  ...math.input,
  assign: 'separate',
  team: solverVerifier({ solver: { system: '<solver>' }, verifier: { system: '<verifier>' } }),
});
