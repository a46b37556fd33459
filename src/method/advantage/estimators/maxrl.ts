import { defineEstimator } from '../define-estimator.js';
import { statisticsOf } from '../groups.js';
import { agentChoice, scoreChoices, sharingChoices } from '../named-choices.js';
import { poolOf, scoresOf } from '../normalise.js';

/** Means that are smaller are 0: sums in another order differ by rounding. */
const ROUNDING = 1e-9;

/**
 * Maximum-likelihood reinforcement learning (Tajwar et al. 2026, arXiv 2602.02710): the distance from the group's mean,
 * divided by that mean. For rewards of 0 and 1 and groups of n the expected gradient belongs to the first n - 1 terms
 * of log p = -sum of (1 - p)^k / k, p the probability of success; plain policy gradients have the first term alone. So
 * rare successes weigh about 1 / p. The theory needs rewards of 0 or more. A group whose mean is not above 0 gets
 * advantage 0.
 */
export const maxRl = defineEstimator({
  type: 'maxrl',
  schema: { ...agentChoice, ...scoreChoices, ...sharingChoices },
  source: 'MaxRL, Tajwar et al. 2026, arXiv 2602.02710; prime-rl',
  formula:
    '(s - mean episodes) / mean episodes, 0 if the mean is not above 0; `byAgent`: r and agent for s and episodes',
  use: 'rewards of 0 and 1 that are rare: hard tasks count more, up to n - 1 for the only success of n',
  traits: { compared: 'on request', needsNoNegative: true },
  laws: () => ({ shift: [], takesScaleOut: true }),
  penalties: ({ byAgent, episodeScore }) => (!byAgent && episodeScore === 'outcome' ? 'left out' : 'counted'),
  unused: ({ byAgent }) => [byAgent ? 'episodeScore' : 'shareStatistics'],
  compute(batch, { byAgent }, settings) {
    const scores = scoresOf(batch, byAgent ? 'turn' : 'episode', settings);
    const { turns, members, values } = poolOf(batch, byAgent ? 'agent' : 'episodes', scores, settings);
    const { mean } = statisticsOf(members, values);
    return scores.map((score, i) => {
      const ofGroup = mean[turns[i] as number] as number;
      return ofGroup > ROUNDING ? (score - ofGroup) / ofGroup : 0;
    });
  },
});
