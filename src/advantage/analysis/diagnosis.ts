/** What an agent's predicted inflation means, in words: probe, training, report and inspection say the same. */
import { percent, significant } from '../../core/format.js';
import type { OpenEstimator } from '../define-estimator.js';
import { isShared } from '../normalise.js';
import type { AgentCalls } from './agent-calls.js';

/** The factor from which on (or below whose inverse) an inflation is worth a sentence of its own. */
const NOTABLE = 1.25;
/** The factor above which an estimator with a shared mean is worth changing. */
const INFLATED = 2;
/** The share of its own rewards in an agent's squared scores below which the others decide more than it does. */
const MOSTLY_OWN = 0.5;
/** The same, below which the share is worth a sentence. */
const NEARLY_ALL_OWN = 0.75;
/** Turns in a group below which an agent has hardly anything to be compared with. */
const FEWEST_TURNS = 3;
/** The share of an agent's groups with one turn of it above which an estimator that skips them teaches too little. */
const OFTEN_ALONE = 0.25;

/** What is known about an agent. */
export interface AgentDiagnosis {
  /** The predicted inflation (Lemma 4.2); undefined where no group has a spread to judge by. */
  readonly inflation: number | undefined;
  /** How much of its squared scores follows its own rewards (`ownShares`); undefined where that is not known. */
  readonly ownShare?: number | undefined;
  readonly calls: Omit<AgentCalls, 'alone'>;
}

/** One sentence about when an agent is called and what statistics that all agents share do to its gradient. */
export function explainInflation(agent: string, { inflation, ownShare, calls }: AgentDiagnosis): string {
  const { share, success, overall } = calls;
  const always = share > 0.99;
  const called = `${agent} is called in ${always ? 'every episode' : `${percent(share, 0)} of the episodes`}`;
  if (inflation === undefined) return `${called}; no group has scores that differ, so there is no inflation to judge.`;
  const follows =
    ownShare !== undefined && ownShare < NEARLY_ALL_OWN
      ? ` Of what they feed it, ${percent(ownShare, 0)} follows its own rewards.`
      : '';
  if (inflation >= NOTABLE || inflation <= 1 / NOTABLE) {
    const which = always
      ? 'with scores that are not those of the whole team'
      : `those that go ${success < overall ? 'badly' : 'well'} (${significant(success)} on average, ${significant(overall)} over all)`;
    return `${called}, ${which}: shared statistics multiply the second moment of its gradient by ${factor(inflation)}.${follows}`;
  }
  if (follows !== '')
    return `${called}: shared statistics leave the second moment of its gradient as it would be (${factor(inflation)}).${follows}`;
  const when = always ? '' : ', within a task as often in good ones as in bad';
  return `${called}${when}: shared statistics scale its gradient as its own would (${factor(inflation)}).`;
}

/** Whether what shared statistics do to an agent is worth a sentence; not where there is nothing to judge by. */
export function isNotable({ inflation, ownShare }: NotedInflation): boolean {
  if (inflation === null) return false;
  return inflation >= NOTABLE || inflation <= 1 / NOTABLE || (ownShare ?? 1) < NEARLY_ALL_OWN;
}

interface NotedInflation {
  readonly inflation: number | null;
  readonly ownShare?: number | null | undefined;
}

const factor = (inflation: number) => inflation.toFixed(inflation < 10 ? 2 : 1);

/**
 * Whether all agents of a task share the mean that their turns are measured against: then an agent that is called when
 * things go badly is told that whatever it does is bad.
 */
export function sharesMean({ rule }: Pick<OpenEstimator, 'rule'>): boolean {
  return rule !== undefined && isShared(rule.mean);
}

/**
 * Advice about an agent that an estimator with a shared mean inflates by more than 2, or feeds less of its own rewards
 * than of anything else; undefined for any other. The second limit told every regime of docs/findings.md in which an
 * agent's own statistics gained from those in which they did not; the first is that of Lemma 4.2 alone.
 */
export function inflationAdvice(
  agent: string,
  diagnosis: AgentDiagnosis,
  { type, groupSize }: { readonly type: string; readonly groupSize: number },
): { readonly says: string; readonly remedy: string } | undefined {
  const { inflation, ownShare = 1 } = diagnosis;
  if (inflation === undefined || (inflation <= INFLATED && ownShare >= MOSTLY_OWN)) return undefined;
  const turns = diagnosis.calls.share * groupSize;
  const larger =
    turns < FEWEST_TURNS
      ? ` It is called ${significant(turns)} times in a group of ${groupSize}: a larger training.groupSize gives it more to be compared with.`
      : '';
  return {
    says: `${explainInflation(agent, diagnosis)} ${type} judges it by what the others earn.`,
    remedy: `advantage.type=drmas (or drmas-mean) measures every agent by its own turns; drmas ablate compares them.${larger}`,
  };
}

/**
 * Advice about an agent that often acts once in a task, where the estimator compares it with itself and gives groups of
 * one advantage 0; undefined for any other. In docs/findings.md (groups of other sizes) that is where the gain of
 * Dr. MAS goes, and where the other rules for groups of one keep it.
 */
export function aloneAdvice(
  agent: string,
  { alone }: Pick<AgentCalls, 'alone'>,
  { rule, settings }: Pick<OpenEstimator, 'rule' | 'settings'>,
): { readonly says: string; readonly remedy: string } | undefined {
  const skipped = rule !== undefined && !isShared(rule.mean) && rule.mean !== 'batch-agent';
  if (!skipped || settings.singleton !== 'zero' || alone <= OFTEN_ALONE) return undefined;
  return {
    says: `In ${percent(alone, 0)} of the tasks in which ${agent} acts it acts once: it has no turn of its own to be compared with there, and learns nothing from them.`,
    remedy: 'advantage.singleton=raw or batch learns from those too; a larger training.groupSize leaves fewer of them.',
  };
}
