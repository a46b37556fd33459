/** The incidents of a run, on one time line. */
import type { EarlyStop } from '@drmas/engine/events';
import { significant } from '@drmas/engine/host';
import type { EventsByKind } from './run-log.js';
import type { Crossing } from './trouble.js';

export interface Incident {
  readonly step: number;
  /** The agent that it is about. Undefined if it is about the whole team. */
  readonly agent: string | undefined;
  readonly kind: 'spike' | 'skipped' | 'symptom' | 'warning' | 'failed' | 'crossing' | 'stop';
  readonly text: string;
  readonly count: number;
}

/** Codes of warnings about an agent's health, not about the run. */
const SYMPTOMS = new Set(['inflation', 'entropy-collapse', 'length-collapse', 'echo-trap', 'rewarded-invalid']);

/** The incidents of a run in the order of their steps. The failed episodes of a step are one incident. */
export function incidentsOf(log: EventsByKind, crossings: readonly Crossing[]): Incident[] {
  const failed = new Map<number, Incident>();
  for (const { step, reason, message } of log.failures) {
    const count = (failed.get(step)?.count ?? 0) + 1;
    failed.set(step, { step, agent: undefined, kind: 'failed', text: `${reason}: ${message}`, count });
  }
  const known = new Set(log.agents);
  const incidents: Incident[] = [
    ...log.spikes.map(({ step, type, agent, policy, gradientNorm, median, action }): Incident => {
      const whose = agent ?? (known.has(policy) ? policy : undefined);
      const did = type === 'skipped' ? 'the update was not made' : action;
      const text = `gradient norm ${significant(gradientNorm)} against a median of ${significant(median)}; ${did}`;
      return { step, agent: whose, kind: type, text, count: 1 };
    }),
    ...log.warnings.map(({ step = 0, agent: named, code, message: text }): Incident => {
      const agent = named !== undefined && known.has(named) ? named : undefined;
      return { step, agent, kind: SYMPTOMS.has(code) ? 'symptom' : 'warning', text, count: 1 };
    }),
    ...crossings.map(({ step, agent, text: change }): Incident => {
      return { step, agent, kind: 'crossing', text: `left its starting range: ${change}`, count: 1 };
    }),
    ...failed.values(),
    ...(log.stop === undefined ? [] : [stopIncident(log.stop)]),
  ];
  return incidents.sort((a, b) => a.step - b.step);
}

const stopIncident = ({ step, message }: EarlyStop): Incident => ({
  step,
  agent: undefined,
  kind: 'stop',
  text: `the run ended early: ${message}`,
  count: 1,
});
