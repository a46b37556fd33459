/** Replaces training in tests that only need the order of events: as many events as a run has, and scores by seed. */
import { type RunPlace, thisProcess } from '../../src/runs/run/execute/start-run.js';
import { evaluation, finished, started, step } from '../fixtures/run-events.js';

export const quickPlace: RunPlace = {
  ...thisProcess,
  requireKernels: async () => {},
  /** Scores 10 points a seed; `drmas` gains 2 points a step, all others none. */
  async executeRun({ seed, advantage, training }, run, { signal }, { checkpoint } = {}) {
    const scoreOf = (at: number) => evaluation(at, 0.1 * seed + (advantage.type === 'drmas' ? 0.02 * at : 0));
    await run.begin();
    if (checkpoint === undefined) for (const event of [started, scoreOf(0)]) run.emit(event);
    for (let at = (checkpoint?.step ?? 0) + 1; at <= training.steps; at++) {
      run.emit(step(at));
      await run.writeCheckpoint(at, async () => {});
      signal.throwIfAborted();
    }
    run.emit(scoreOf(training.steps));
    run.emit(finished);
  },
};
