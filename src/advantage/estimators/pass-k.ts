import { ArgumentError } from '../../core/errors.js';
import type { Batch } from '../batch.js';
import type { Estimator } from '../estimator.js';
import { statisticsOf } from '../groups.js';
import { comparisonOf, measure, poolOf, type Settings } from '../partition.js';

/**
 * Pass@k as the objective (the paper's code, `grpo_passk`): only the best episode of a task counts, by as much as it leads the
 * second best; all of its turns get that lead, divided by the spread of the task's episode scores.
 * @throws ArgumentError naming a task with fewer than two episodes
 */
export function passK(
  batch: Batch,
  { spread = 'task' }: Extract<Estimator, { type: 'grpo-passk' }>,
  settings: Settings,
): Float64Array {
  const { episodes, tasks } = batch;
  const scores = batch.episodeScores(settings.episodeScore);
  const taskOf = batch.taskOfEpisode;
  const { size } = statisticsOf(taskOf, scores);
  const best = new Int32Array(tasks.count).fill(-1);
  const second = new Float64Array(tasks.count).fill(Number.NEGATIVE_INFINITY);
  scores.forEach((score, e) => {
    const task = taskOf.of[e] as number;
    const leader = best[task] as number;
    const leading = leader < 0 ? Number.NEGATIVE_INFINITY : (scores[leader] as number);
    if (score > leading) best[task] = e;
    second[task] = Math.max(second[task] as number, Math.min(score, leading));
  });
  const leads = Float64Array.from(episodes.of, (e, i) => {
    const task = tasks.of[i] as number;
    if (size[task] === 1) throw new ArgumentError(`${batch.nameOf(i)}: grpo-passk needs two episodes of every task`);
    return best[task] === e ? (scores[e] as number) - (second[task] as number) : 0;
  });
  if (spread === 'none') return leads;
  const comparison = comparisonOf(poolOf(batch, 'episodes', leads, settings), 'zero');
  // Leads are measured from 0, not from a mean.
  const mean = { ...comparison, mean: new Float64Array(tasks.count) };
  return measure(leads, { mean, spread: comparison }, settings);
}
