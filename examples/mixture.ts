/**
 * The team of `math` on a mixture of short and long chains. Evaluations test it on each kind. With the mixture's
 * weights you can train the same team on one kind alone, after the same demonstrations:
 *
 *     npx drmas ablate examples/mixture.ts --vary 'tasks.train.weights=[1,1],[1,0],[0,1]' --seeds 5
 */
import { arithmetic, defineRecipe, mix } from 'drmas';
import math from '../recipes/math/recipe.js';

export default defineRecipe({
  ...math.input,
  tasks: mix({ short: arithmetic({ operations: [2, 3] }), long: arithmetic({ operations: [5, 6] }) }),
  evaluation: { every: 60, tasks: 128, samples: 4 },
});
