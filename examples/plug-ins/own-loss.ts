/**
 * A loss of your own, which stands in capped.ts. Copy both files, put your team in the place of the one from digits.ts,
 * change `token` in capped.ts, and run this one:
 *
 *     npx drmas train examples/plug-ins/own-loss.ts
 *
 * `token` gets the ratio, the advantage and the log-prob of one token, and writes its loss and the gradient. The module
 * is part of the run's code hash: `drmas resume` refuses a run whose loss has changed.
 */
import { defineRecipe } from 'drmas';
import { lossFrom } from 'drmas/losses';
import { model, tasks, team } from './digits.js';

export default defineRecipe({
  team,
  tasks,
  model,
  use: [lossFrom(import.meta.resolve('./capped.ts'))],
  loss: { type: 'capped', cap: 1.5 },
  policies: { writer: { miniBatches: 2 } },
  training: { steps: 4, tasksPerStep: 4, groupSize: 4 },
  evaluation: { tasks: 8, samples: 1 },
});
