/**
 * The team of `math` on a mixture of short and long chains, which is tested on each of them. With the weights of the
 * mixture the same team trains on one of them alone, after the same demonstrations:
 *
 *     npx drmas ablate examples/mixture.ts --vary 'tasks.train.weights=[1,1],[1,0],[0,1]' --seeds 5
 */
import { arithmetic, defineRecipe, mix } from 'drmas';
import math from '../recipes/math.js';

export default defineRecipe({
  ...math.input,
  tasks: mix({ short: arithmetic({ operations: [2, 3] }), long: arithmetic({ operations: [5, 6] }) }),
  evaluation: { every: 60, tasks: 128, samples: 4 },
});
