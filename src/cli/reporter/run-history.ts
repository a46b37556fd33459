import type { EvaluationEvent, RunEvent, RunStarted, Spike, Step, Warmup } from '../../base/events.js';

/** The events of a run so far, by their kind. */
export interface RunHistory {
  readonly started: RunStarted | undefined;
  readonly warmups: readonly Warmup[];
  readonly steps: readonly Step[];
  readonly evaluations: readonly EvaluationEvent[];
  readonly spikes: readonly Spike[];
  /** The step of the last checkpoint. */
  readonly checkpoint: number | undefined;
  readonly failedEpisodes: number;
  /** The number of failed episodes by reason. */
  readonly failures: Readonly<Record<string, number>>;
}

export const emptyHistory: RunHistory = {
  started: undefined,
  warmups: [],
  steps: [],
  evaluations: [],
  spikes: [],
  checkpoint: undefined,
  failedEpisodes: 0,
  failures: {},
};

/** The history with one more event. */
export function remember(history: RunHistory, event: RunEvent): RunHistory {
  switch (event.type) {
    case 'run.started':
      return { ...history, started: event };
    case 'warmup':
      return { ...history, warmups: [...history.warmups, event] };
    case 'step':
      return { ...history, steps: [...history.steps, event] };
    case 'evaluation':
      return { ...history, evaluations: [...history.evaluations, event] };
    case 'spike':
    case 'skipped':
      return { ...history, spikes: [...history.spikes, event] };
    case 'checkpoint':
      return { ...history, checkpoint: event.step };
    case 'episode.failed':
      return {
        ...history,
        failedEpisodes: history.failedEpisodes + 1,
        failures: { ...history.failures, [event.reason]: (history.failures[event.reason] ?? 0) + 1 },
      };
    default:
      return history;
  }
}
