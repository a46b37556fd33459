/** The events of a run by kind, for charts and tables. */
import type { RunEvent, ScoredEvaluation } from '@drmas/engine/events';
import { isScored } from '@drmas/engine/nouns';

type Of<Type extends RunEvent['type']> = Extract<RunEvent, { readonly type: Type }>;

/** The events of a run by kind, each in order. */
export interface EventsByKind {
  /** The latest message about the work before the run's start, such as compiling the kernels. */
  readonly preparing: Of<'preparing'> | undefined;
  readonly started: Of<'run.started'> | undefined;
  readonly finished: Of<'run.finished'> | undefined;
  readonly warmups: readonly Of<'warmup'>[];
  readonly steps: readonly Of<'step'>[];
  readonly evaluations: readonly Of<'evaluation'>[];
  /** Those of which an episode has a score. */
  readonly scores: readonly (Of<'evaluation'> & ScoredEvaluation)[];
  /** Spikes with skipped updates. */
  readonly spikes: readonly Of<'spike' | 'skipped'>[];
  /** The best evaluation whose checkpoint the run keeps, and the rule that ended it early, if it has not gone on. */
  readonly best: Of<'best'> | undefined;
  readonly stop: Of<'stop'> | undefined;
  readonly warnings: readonly Of<'warning'>[];
  readonly failures: readonly Of<'episode.failed'>[];
  /** The agents that played in a step, sorted, so that each has one colour everywhere. */
  readonly agents: readonly string[];
}

export const emptyLog: EventsByKind = {
  preparing: undefined,
  started: undefined,
  finished: undefined,
  warmups: [],
  steps: [],
  evaluations: [],
  scores: [],
  spikes: [],
  best: undefined,
  stop: undefined,
  warnings: [],
  failures: [],
  agents: [],
};

export function extendLog(log: EventsByKind, events: readonly RunEvent[]): EventsByKind {
  const of = <Type extends RunEvent['type']>(type: Type) =>
    events.filter((event): event is Of<Type> => event.type === type);
  const steps = of('step');
  const ended = events.findLast(({ type }) => type === 'stop' || type === 'step');
  const evaluations = of('evaluation').filter(({ split }) => split === 'test');
  return {
    preparing: of('preparing').at(-1) ?? log.preparing,
    started: of('run.started').at(-1) ?? log.started,
    finished: of('run.finished').at(-1) ?? log.finished,
    warmups: [...log.warmups, ...of('warmup')],
    steps: [...log.steps, ...steps],
    evaluations: [...log.evaluations, ...evaluations],
    scores: [...log.scores, ...evaluations.filter(isScored)],
    spikes: [
      ...log.spikes,
      ...events.filter((event): event is Of<'spike' | 'skipped'> => /^(spike|skipped)$/.test(event.type)),
    ],
    best: of('best').at(-1) ?? log.best,
    stop: ended?.type === 'stop' ? ended : ended === undefined ? log.stop : undefined,
    warnings: [...log.warnings, ...of('warning')],
    failures: [...log.failures, ...of('episode.failed')],
    agents: [...new Set([...log.agents, ...steps.flatMap(({ agents }) => Object.keys(agents ?? {}))])].sort(),
  };
}
