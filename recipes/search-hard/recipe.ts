/**
 * The recipe `search` with two and three hops only: many groups fail as a whole at first, and their episodes differ by
 * penalties alone. Estimators treat such groups differently, so this recipe serves to compare them:
 *
 *     drmas train search-hard --set advantage.type=grpo
 */
import { defineRecipe } from 'drmas';
import search from '../search/recipe.js';
import { encyclopedia } from '../search/world.js';

export default defineRecipe({
  ...search.input,
  tasks: encyclopedia({ hops: [0, 1, 2] }),
  training: { steps: 60, tasksPerStep: 16, groupSize: 8 },
  evaluation: { every: 10, tasks: 256, samples: 4, samplesDuring: 1 },
});
