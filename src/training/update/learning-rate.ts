import type { Schedule } from '../../recipe/learning.js';

export interface LearningRateSettings {
  readonly learningRate: number;
  /** Updates over which the rate rises from 0. */
  readonly warmupSteps: number;
  readonly schedule: Schedule;
}

/**
 * The learning rate of an update (1, 2, ...), a pure function of its number: a linear rise to the whole rate at update
 * `warmupSteps`, then what the schedule says, so that its last update has `finalFraction` of the rate, and those after it too.
 * @param total Updates of the whole run, for a schedule that names no number of its own
 */
export function learningRateAt(
  { learningRate, warmupSteps, schedule }: LearningRateSettings,
  update: number,
  total: number,
): number {
  const rise = Math.max(1, warmupSteps);
  const risen = learningRate * Math.min(1, update / rise);
  if (schedule.type === 'constant') return risen;
  const { updates = total, finalFraction } = schedule;
  const progress = Math.min(1, Math.max(0, update - rise) / Math.max(1, updates - rise));
  const left = schedule.type === 'linear' ? 1 - progress : (1 + Math.cos(Math.PI * progress)) / 2;
  return risen * (finalFraction + (1 - finalFraction) * left);
}
