import { z } from 'zod';
import { defineEstimator } from '../define-estimator.js';
import { statisticsOf } from '../groups.js';
import { divisorChoices, scoreChoices } from '../named-choices.js';
import { measure, poolOf, statisticsOfPool } from '../normalise.js';

/**
 * Pass@k as the objective (Tang et al. 2025, arXiv 2503.19595): only the best episode of a task counts, by its lead
 * over the second best. All of its turns get that lead, divided by the spread of the task's episode scores. In the code
 * of the Dr. MAS paper, which comes from verl, only the first row of the best episode gets it. If one episode of a task
 * is left, because the others failed, its advantage is 0.
 */
export const grpoPassK = defineEstimator({
  type: 'grpo-passk',
  schema: {
    spread: z
      .enum(['task', 'none'])
      .default('task')
      .describe("The standard deviation that divides: of the task's episode scores, or none."),
    ...divisorChoices,
    ...scoreChoices,
  },
  source: 'Tang et al. 2025, arXiv 2503.19595; as verl has it',
  formula:
    "for the task's best episode its lead over the second best / (std episodes + eps), 0 for the others; " +
    "`spread: 'none'` does not divide",
  use: 'pass@k is the goal',
  traits: {
    compared: 'on request',
    groupSize: { least: 2, why: 'compares the two best episodes of a group' },
  },
  laws: ({ spread }) => ({ shift: ['reward'], takesScaleOut: spread !== 'none' }),
  penalties: ({ episodeScore }) => (episodeScore === 'outcome' ? 'left out' : 'counted'),
  unused: ({ spread }) => (spread === 'none' ? ['epsilon', 'minimumSpread'] : []),
  compute(batch, { spread }, settings) {
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
      return best[task] === e && size[task] !== 1 ? (scores[e] as number) - (second[task] as number) : 0;
    });
    if (spread === 'none') return leads;
    const statistics = statisticsOfPool(poolOf(batch, 'episodes', leads, settings), 'zero');
    // Leads are measured from 0, not from a mean.
    const mean = { ...statistics, mean: new Float64Array(tasks.count) };
    return measure(leads, { mean, spread: statistics }, settings);
  },
});
