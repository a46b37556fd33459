/**
 * A tracker of your own: it writes the mean reward of each step into `rewards.csv` in the run's directory. Copy this
 * file, change `event`, and run it:
 *
 *     npx drmas train examples/plug-ins/own-tracker.ts
 *
 * drmas opens the tracker before anything is played, and again when the run is resumed; `run.events` has the events so
 * far. The tracker gets the events through a queue: if it throws or is slow, the run goes on.
 */
import { appendFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { defineRecipe } from 'drmas';
import { defineTracker, type RunEvent } from 'drmas/events';
import { model, tasks, team } from './digits.js';

/** A step has no reward if the reward of each of its episodes failed. */
const rowOf = (event: RunEvent) =>
  event.type === 'step' && event.reward !== undefined ? `${event.step},${event.reward.mean}\n` : '';

export const rewards = defineTracker({
  name: 'rewards',
  async open(run) {
    const path = join(run.path, 'rewards.csv');
    await writeFile(path, `step,reward\n${run.events.map(rowOf).join('')}`);
    return { name: 'rewards.csv', event: (event) => appendFile(path, rowOf(event)) };
  },
});

export default defineRecipe({
  team,
  tasks,
  model,
  use: [rewards],
  training: { steps: 4, tasksPerStep: 4, groupSize: 4 },
  evaluation: { tasks: 8, samples: 1 },
});
