import { differ } from '@drmas/engine/math';
import { z } from 'zod';
import { defineEstimator } from '../define-estimator.js';
import { scoreChoices } from '../named-choices.js';

/**
 * Rejection sampling: 1 for the turns of accepted episodes, 0 for other turns. An episode is accepted if its score
 * exceeds `above` (Yuan et al. 2023). With `keep: 'best'` only the best of these in each task are kept (RAFT, Dong et
 * al. 2023). Equally good episodes share the task's weight, so each task counts the same.
 */
export const rejection = defineEstimator({
  type: 'rejection',
  schema: {
    keep: z
      .enum(['all', 'best'])
      .default('all')
      .describe('The accepted episodes to keep: `all` of them, or the `best` of each task.'),
    above: z.number().default(0).describe('An episode is accepted if its score is above this number.'),
    ...scoreChoices,
  },
  source: 'Yuan et al. 2023; RAFT, Dong et al. 2023',
  formula:
    "1 for the turns of episodes with s > `above`, else 0; `keep: 'best'`: only for the task's best, 1 / their number",
  use: 'with the loss `cross-entropy`: imitate what worked ([losses.md](losses.md))',
  traits: { weighsDemonstrations: true, groupChoices: ['keep'] },
  // The bound does not move with the rewards.
  laws: ({ above }) => ({ shift: [], ...(above === 0 ? { takesScaleOut: true } : {}) }),
  penalties: ({ episodeScore }) => (episodeScore === 'outcome' ? 'left out' : 'counted'),
  compute(batch, { keep, above }, { episodeScore }) {
    const { episodes, tasks } = batch;
    const scores = batch.episodeScores(episodeScore);
    const taskOf = batch.taskOfEpisode.of;
    const best = new Float64Array(tasks.count).fill(Number.NEGATIVE_INFINITY);
    scores.forEach((score, e) => {
      const task = taskOf[e] as number;
      best[task] = Math.max(best[task] as number, score);
    });
    const isBest = scores.map((score, e) => (differ(score, best[taskOf[e] as number] as number) ? 0 : 1));
    const sharing = new Float64Array(tasks.count);
    isBest.forEach((one, e) => {
      const task = taskOf[e] as number;
      sharing[task] = (sharing[task] as number) + one;
    });
    return Float64Array.from(episodes.of, (e) => {
      const score = scores[e] as number;
      if (score <= above || !differ(score, above)) return 0;
      return keep === 'all' ? 1 : (isBest[e] as number) / (sharing[taskOf[e] as number] as number);
    });
  },
});
