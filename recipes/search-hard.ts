/**
 * `search` with two and three hops only: many groups fail as a whole at first, and what then tells their episodes apart are
 * penalties alone. That is where estimators differ, so compare them here:
 *
 *     drmas train search-hard --set advantage.type=grpo
 */
import { defineRecipe, encyclopedia } from 'drmas';
import search from './search.js';

export default defineRecipe({
  ...search.input,
  tasks: encyclopedia({ hops: [0, 1, 2] }),
  training: { steps: 60, tasksPerStep: 16, groupSize: 8 },
  evaluation: { every: 10, tasks: 256, samples: 4, samplesDuring: 1 },
});
