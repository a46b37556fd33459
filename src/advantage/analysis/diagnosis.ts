/** What an agent's predicted inflation means, in words: probe, training, report and inspection say the same. */
import { percent, significant } from '../../core/format.js';
import type { OpenEstimator } from '../define-estimator.js';
import { isShared } from '../normalise.js';
import type { AgentCalls } from './agent-calls.js';

/** The factor from which on (or below whose inverse) an inflation is worth a sentence of its own. */
const NOTABLE = 1.25;
/** The factor above which an estimator with a shared mean is worth changing. */
const INFLATED = 2;
/** Turns in a group below which an agent has hardly anything to be compared with. */
const FEWEST_TURNS = 3;

/** What is known about an agent. */
export interface AgentDiagnosis {
  /** The predicted inflation (Lemma 4.2); undefined where no group has a spread to judge by. */
  readonly inflation: number | undefined;
  readonly calls: AgentCalls;
}

/** One sentence about when an agent is called and what statistics that all agents share do to its gradient. */
export function explainInflation(agent: string, { inflation, calls }: AgentDiagnosis): string {
  const { share, success, overall } = calls;
  const always = share > 0.99;
  const called = `${agent} is called in ${always ? 'every episode' : `${percent(share, 0)} of the episodes`}`;
  if (inflation === undefined) return `${called}; no group has scores that differ, so there is no inflation to judge.`;
  if (!isNotable(inflation)) {
    const when = always ? '' : ', within a task as often in good ones as in bad';
    return `${called}${when}: shared statistics scale its gradient as its own would (${factor(inflation)}).`;
  }
  const which = always
    ? 'with scores that are not those of the whole team'
    : `those that go ${success < overall ? 'badly' : 'well'} (${significant(success)} on average, ${significant(overall)} over all)`;
  return `${called}, ${which}: shared statistics multiply the second moment of its gradient by ${factor(inflation)}.`;
}

/** Whether an inflation is worth a sentence; not where there is none to judge. */
export function isNotable(inflation: number | null): boolean {
  return inflation !== null && (inflation >= NOTABLE || inflation <= 1 / NOTABLE);
}

const factor = (inflation: number) => inflation.toFixed(inflation < 10 ? 2 : 1);

/**
 * Whether all agents of a task share the mean that their turns are measured against: then an agent that is called when
 * things go badly is told that whatever it does is bad.
 */
export function sharesMean({ rule }: Pick<OpenEstimator, 'rule'>): boolean {
  return rule !== undefined && isShared(rule.mean);
}

/** Advice about an agent that an estimator with a shared mean inflates by more than 2; undefined for any other. */
export function inflationAdvice(
  agent: string,
  diagnosis: AgentDiagnosis,
  { type, groupSize }: { readonly type: string; readonly groupSize: number },
): { readonly says: string; readonly remedy: string } | undefined {
  if (diagnosis.inflation === undefined || diagnosis.inflation <= INFLATED) return undefined;
  const turns = diagnosis.calls.share * groupSize;
  const larger =
    turns < FEWEST_TURNS
      ? ` It is called ${significant(turns)} times in a group of ${groupSize}: a larger training.groupSize gives it more to be compared with.`
      : '';
  return {
    says: `${explainInflation(agent, diagnosis)} ${type} judges it by the others' successes.`,
    remedy: `advantage.type=drmas (or drmas-mean) measures every agent by its own turns; drmas ablate compares them.${larger}`,
  };
}
