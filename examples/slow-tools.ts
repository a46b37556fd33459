/**
 * The recipe `repair` whose sandbox takes its time to open: a fifth of a second on average, now and then a whole one.
 * A step waits for its slowest episode; with `rollout.staleness` the next steps are played meanwhile:
 *
 *     npx drmas ablate examples/slow-tools.ts --vary rollout.staleness=0,1,3 --seeds 5
 */
import { setTimeout as wait } from 'node:timers/promises';
import { defineRecipe } from 'drmas';
import repair from '../recipes/repair/recipe.js';

const MEAN_MS = 200;

const { team, training, ...rest } = repair.input;

export default defineRecipe({
  ...rest,
  team: {
    ...team,
    name: 'slow-sandbox',
    async play(episode) {
      await wait(-MEAN_MS * Math.log(1 - Math.random()), undefined, { signal: episode.signal });
      return team.play(episode);
    },
  },
  training: { ...training, steps: 100 },
  evaluation: { every: 50, tasks: 150, samples: 4 },
});
