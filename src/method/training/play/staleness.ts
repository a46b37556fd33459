import type { OpenRun } from '../run/run-state.js';

/**
 * Whether a run that resumes after this step equals the uninterrupted run: no rollout had begun before the step's
 * updates.
 */
export const goesOnAfter = ({ staleness, training }: Pick<OpenRun, 'staleness' | 'training'>, step: number): boolean =>
  staleness === 0 || step % training.checkpointEvery === 0;
