/**
 * An estimator of your own: each turn is compared with the median reward of its task. Copy this file, change `type`,
 * `schema` and `compute`, and run it:
 *
 *     npx drmas train examples/plug-ins/own-estimator.ts
 *
 * `compute` gets the turns of one step and returns one advantage for each of them. `batch.tasks` groups the turns by
 * task; other groups are `batch.agents`, `batch.taskAgents` and `batch.episodes`. The settings of `schema` are checked
 * before the run starts, and `--set advantage.scale=2` sets them.
 */
import { defineRecipe } from 'drmas';
import { defineEstimator } from 'drmas/advantages';
import { z } from 'zod';
import { model, tasks, team } from './digits.js';

export const median = defineEstimator({
  type: 'median',
  schema: { scale: z.number().gt(0).default(1).describe('The factor of all advantages.') },
  source: 'an example',
  formula: '`scale` x (r - the median r of the task)',
  use: 'rewards with outliers, which pull a mean away from most turns',
  compute(batch, { scale }) {
    const { of } = batch.tasks; // the number of each turn's task
    const rewards = new Map<number, number[]>();
    batch.rewards.forEach((reward, i) => {
      rewards.set(of[i] as number, [...(rewards.get(of[i] as number) ?? []), reward]);
    });
    const medians = new Map(Array.from(rewards, ([task, values]) => [task, medianOf(values)]));
    return batch.rewards.map((reward, i) => scale * (reward - (medians.get(of[i] as number) ?? 0)));
  },
});

function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(middle)] as number) + (sorted[Math.ceil(middle)] as number)) / 2;
}

export default defineRecipe({
  team,
  tasks,
  model,
  use: [median],
  advantage: { type: 'median', scale: 2 },
  training: { steps: 4, tasksPerStep: 4, groupSize: 4 },
  evaluation: { tasks: 8, samples: 1 },
});
