/**
 * A run that keeps its best checkpoint and ends by itself: after a score of 90 %, after three evaluations without a
 * better one, or after five minutes. `best` then names the kept checkpoint:
 *
 *     npx drmas train examples/keep-best.ts --run runs/keep-best
 *     npx drmas evaluate runs/keep-best --checkpoint best --samples 16
 *     npx drmas serve runs/keep-best --checkpoint best
 */
import { defineRecipe } from 'drmas';
import repair from '../recipes/repair/recipe.js';

export default defineRecipe({
  ...repair.input,
  training: {
    ...repair.input.training,
    keepBest: true,
    stopWhen: { score: 0.9, patience: 3, minutes: 5 },
  },
  // The rules look at evaluations, so these are short and frequent.
  evaluation: { every: 10, tasks: 50, samples: 2 },
});
