/** The advantages of tasks that are played once, found by trying an estimator on a few turns. */
import type { OpenEstimator } from '../define-estimator.js';
import { EPISODES, triedOn } from './tried-turns.js';

export interface LoneEpisodes {
  /** Whether the estimator compares the episodes of a task, so that other advantages result if there is one. */
  readonly compares: boolean;
  /** Whether no turn of an episode that is alone gets an advantage. */
  readonly silent: boolean;
}

/**
 * Tries an estimator on four episodes with different rewards: of two tasks, and each of a task of its own.
 * @param agents The agents of the team
 */
export function loneEpisodes(estimator: OpenEstimator, agents: readonly string[]): LoneEpisodes {
  const [together, alone] = [2, EPISODES].map((tasks) => triedOn(estimator, { tasks, agents })?.flat());
  if (together === undefined || alone === undefined) return { compares: false, silent: false };
  return {
    compares: together.some((advantage, i) => advantage !== alone[i]),
    silent: alone.every((advantage) => Math.abs(advantage) < 1e-9),
  };
}
