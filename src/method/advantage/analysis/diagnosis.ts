/** Explains an agent's predicted inflation in words. Probe, training, report and inspection share the sentences. */
import { percent, significant } from '@drmas/engine/host';
import type { OpenEstimator } from '../define-estimator.js';
import { isShared } from '../normalise.js';
import type { AgentCalls } from './agent-calls.js';

/** An inflation above this factor, or below its inverse, gets a sentence of its own. */
const NOTABLE = 1.25;
/** Above this inflation drmas advises another estimator if the agents share a mean and the own share is not known. */
const INFLATED = 2;
/**
 * If an agent's own rewards explain less than this share of its squared scores, the other agents decide more than it
 * does.
 */
const MOSTLY_OWN = 0.5;
/** The report mentions a share below this one. */
const NEARLY_ALL_OWN = 0.75;
/** An agent that is called in fewer episodes of a group has hardly anything to be compared with. */
const FEWEST_EPISODES = 3;
/**
 * An estimator that skips groups of one turn learns too little from an agent if more than this share of its groups has
 * one turn.
 */
const OFTEN_ALONE = 0.25;

export interface AgentDiagnosis {
  /** The predicted inflation (Lemma 4.2). Undefined if no group has enough spread. */
  readonly inflation: number | undefined;
  /** The share of its squared scores that its own rewards explain (`ownShares`). Undefined if it is not known. */
  readonly ownShare?: number | undefined;
  readonly calls: Omit<AgentCalls, 'alone'>;
}

/**
 * One sentence: when the agent is called, and the effect of shared statistics on its gradient.
 * @param shared Whether the recipe's estimator shares statistics; else the sentence says what they would do
 */
export function explainInflation(
  agent: string,
  { inflation, ownShare, calls }: AgentDiagnosis,
  shared = false,
): string {
  const { share, success, overall } = calls;
  const always = share > 0.99;
  const called = `${agent} is called in ${always ? 'every episode' : `${percent(share, 0)} of the episodes`}`;
  if (inflation === undefined) return `${called}; no group has scores that differ, so there is no inflation to judge.`;
  const origin =
    ownShare !== undefined && ownShare < NEARLY_ALL_OWN
      ? ` ${shared ? '' : 'Under them '}${percent(ownShare, 0)} of its learning signal ${shared ? 'comes' : 'would come'} from its own rewards, the rest from the level and the luck of the other agents.`
      : '';
  if (inflation >= NOTABLE || inflation <= 1 / NOTABLE) {
    const which = always
      ? 'with scores that are not those of the whole team'
      : `those that go ${success < overall ? 'badly' : 'well'} (${significant(success)} on average, ${significant(overall)} over all)`;
    return `${called}, ${which}: shared statistics multiply the second moment of its gradient by ${factor(inflation)}.${origin}`;
  }
  if (origin !== '')
    return `${called}: shared statistics leave the second moment of its gradient as it would be (${factor(inflation)}).${origin}`;
  const when = always ? '' : ', within a task as often in good ones as in bad';
  return `${called}${when}: shared statistics scale its gradient as its own would (${factor(inflation)}).`;
}

/** Whether the effect of shared statistics on an agent deserves a sentence. False if it is not known. */
export function isNotable({ inflation, ownShare }: NotedInflation): boolean {
  if (inflation === null) return false;
  return inflation >= NOTABLE || inflation <= 1 / NOTABLE || (ownShare ?? 1) < NEARLY_ALL_OWN;
}

/**
 * The cost of such a share in the teams of a study. The rule of research/plans/hint.md allows no number for a single
 * team. A test compares the sentence with the results.
 */
const OBSERVED =
  'In 18 toy teams with such a share, chosen from 120 random ones, at rates of 0.001 and 0.003, grpo needed 1.3 times the steps of drmas to learn half of what drmas learns (median; the lowest tenth 1.0 times, and 3 teams did not get there). In 22 others it needed 1.0 times (nine in ten at most 1.3).';

interface NotedInflation {
  readonly inflation: number | null;
  readonly ownShare?: number | null | undefined;
}

const factor = (inflation: number) => inflation.toFixed(inflation < 10 ? 2 : 1);

/**
 * Whether all agents of a task share the mean that their turns are measured against. Then an agent that is called when
 * things go badly gets negative advantages whatever it does. An estimator without a rule says so by its choice
 * `byAgent`. False for `magrpo`, whose mean is over the turns of one step: in a team whose agents take turns that is
 * often one agent. False for `grpo-passk`, which measures from 0 and gives no negative advantage.
 */
export function sharesMean({ rule, choices }: Pick<OpenEstimator, 'rule' | 'choices'>): boolean {
  return rule === undefined ? choices.byAgent === false : isShared(rule.mean);
}

/**
 * Advice about an agent that gets less than half of its squared scores from its own rewards, under an estimator with a
 * shared mean. If that share is not known, because no group has two of its turns, an inflation above 2 decides.
 * Undefined for other agents. The advice says "may" and names both numbers: a limit on the inflation missed most gains
 * of docs/findings.md, and the limit on the share, tested blind there, finds too few gains and warns too often in vain
 * for more. If the share is known, the advice also says what such a share cost in steps in other teams.
 */
export function inflationAdvice(
  agent: string,
  diagnosis: AgentDiagnosis,
  { type, groupSize }: { readonly type: string; readonly groupSize: number },
): { readonly says: string; readonly remedy: string } | undefined {
  const { inflation, ownShare } = diagnosis;
  if (inflation === undefined) return undefined;
  if (ownShare === undefined ? inflation <= INFLATED : ownShare >= MOSTLY_OWN) return undefined;
  const episodes = diagnosis.calls.share * groupSize;
  const larger =
    episodes < FEWEST_EPISODES
      ? ` It is called in ${significant(episodes)} episodes of a group of ${groupSize}: a larger training.groupSize gives it more turns to be compared with.`
      : '';
  return {
    says: `${explainInflation(agent, diagnosis, true)} ${type} judges it by the rewards of the others.`,
    remedy: `advantage.type=drmas, which measures every agent by its own turns, may help; drmas ablate compares them.${ownShare === undefined ? '' : ` ${OBSERVED}`}${larger}`,
  };
}

/**
 * Advice about an agent that often acts once in a task, if the estimator compares the agent with itself and gives
 * groups of one advantage 0. Undefined for other agents. Groups of one remove the gain of Dr. MAS, and the other rules
 * for groups of one keep it (docs/findings.md, groups of other sizes).
 */
export function aloneAdvice(
  agent: string,
  { alone }: Pick<AgentCalls, 'alone'>,
  { rule, settings }: Pick<OpenEstimator, 'rule' | 'settings'>,
): { readonly says: string; readonly remedy: string } | undefined {
  const skipped = rule !== undefined && !isShared(rule.mean) && rule.mean !== 'batch-agent';
  if (!skipped || settings.singleton !== 'zero' || alone <= OFTEN_ALONE) return undefined;
  return {
    says: `In ${percent(alone, 0)} of the tasks in which ${agent} acts, it acts once: it has no turn of its own to be compared with there, and learns nothing from them.`,
    remedy: 'advantage.singleton=batch learns from these tasks too; a larger training.groupSize leaves fewer of them.',
  };
}
