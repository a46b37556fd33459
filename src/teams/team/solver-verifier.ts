import { z } from 'zod';
import { ArgumentError, issuesText } from '../../base/errors.js';
import { mean } from '../../base/math.js';
import { assistant, user } from '../../base/nouns.js';
import { gradeMath } from '../tasks/grading/math.js';
import { agent } from './agent.js';
import { boxed, oneOf } from './parsers.js';
import { defineTeam, type Reply } from './team.js';

export interface SolverVerifierOptions {
  /** The most drafts in an episode. Default 2. */
  readonly maxLoops?: number;
  /** The verifier's word that ends the episode. Default `<approve>`. */
  readonly approve?: string;
  /** The verifier's word that requests another draft. Default `<reject>`. */
  readonly reject?: string;
  /**
   * The meaning of a verdict without exactly one of the two words. Default 'approve': with 'reject' an unreadable
   * verdict earns a second attempt, and verifiers learn to write unreadable ones.
   */
  readonly onUnreadableVerdict?: 'approve' | 'reject';
  /** The solver's system prompt. Default: a prompt of this team. */
  readonly solver?: { readonly system?: string };
  /** The verifier's system prompt. Default: a prompt of this team. */
  readonly verifier?: { readonly system?: string };
  /** The penalty for a turn without a boxed answer, or without a verdict. Default 0.1. */
  readonly invalidPenalty?: number;
  /**
   * The verifier's reward, in place of the team's, if all of its verdicts are true. If only some are true it earns
   * their share; unreadable verdicts count as false. Default: the team's reward.
   */
  readonly verdictReward?: number;
  /** The penalty on the team's reward for each draft after the first. Default 0. */
  readonly attemptCost?: number;
  /** The message to the solver after a rejection. Default: the verifier's text, or `reject` if that is empty. */
  readonly feedback?: (verdict: Reply<string>) => string;
}

export interface SolverVerifierOutcome {
  /** The last draft's boxed answer. */
  readonly answer: string | undefined;
  /** The number of drafts. */
  readonly attempts: number;
  /** The verdicts in order. */
  readonly verdicts: readonly DraftVerdict[];
}

export interface DraftVerdict {
  /** The boxed answer of the draft that was judged. */
  readonly answer: string | undefined;
  /** Absent if the verdict was unreadable. */
  readonly approved?: boolean;
}

const optionsSchema = z
  .strictObject({
    maxLoops: z.int().min(1).default(2),
    approve: z.string().min(1).default('<approve>'),
    reject: z.string().min(1).default('<reject>'),
    onUnreadableVerdict: z.enum(['approve', 'reject']).default('approve'),
    solver: z.strictObject({ system: z.string().optional() }).optional(),
    verifier: z.strictObject({ system: z.string().optional() }).optional(),
    invalidPenalty: z.number().min(0).default(0.1),
    verdictReward: z.number().min(0).optional(),
    attemptCost: z.number().min(0).default(0),
    feedback: z
      .custom<(verdict: Reply<string>) => string>((value) => typeof value === 'function', 'expected a function')
      .optional(),
  })
  .refine(({ approve, reject }) => approve !== reject, 'approve and reject must differ');

/**
 * Creates a team in which a solver writes a draft and a verifier judges it. Approval ends the episode; after a
 * rejection the solver sees the verdict and writes another draft. The last draft is not judged, and counts. The team
 * earns 1 for a right answer; its metric `trueVerdicts` is the share of verdicts that are true.
 *
 * @throws ArgumentError naming the option that is wrong.
 *
 * @example
 * ```ts
 * import { solverVerifier } from 'drmas';
 *
 * const team = solverVerifier({ maxLoops: 2, approve: '<approve>', reject: '<reject>' });
 * ```
 */
export function solverVerifier(options: SolverVerifierOptions = {}) {
  const checked = optionsSchema.safeParse(options);
  if (!checked.success) throw new ArgumentError(`solverVerifier(...): ${issuesText(checked.error.issues)}`);
  const { maxLoops, approve, reject, onUnreadableVerdict, invalidPenalty, verdictReward, attemptCost } = checked.data;
  const {
    solver: solverOptions,
    verifier: verifierOptions,
    feedback = (verdict) => verdict.text || reject,
  } = checked.data;

  return defineTeam({
    name: 'solver-verifier',
    task: z.object({ question: z.string(), answer: z.string() }),
    agents: {
      solver: agent({
        system: solverOptions?.system ?? 'Solve the problem step by step. End with the answer in \\boxed{...}.',
        parse: boxed,
        invalidPenalty,
      }),
      verifier: agent({
        system:
          verifierOptions?.system ??
          `Check the solution. End with ${approve} if the answer is right, or with ${reject} if it is not.`,
        parse: oneOf(approve, reject),
        invalidPenalty,
      }),
    },
    async play({ task, agents: { solver, verifier } }): Promise<SolverVerifierOutcome> {
      let draft = await solver(task.question);
      const verdicts: DraftVerdict[] = [];
      for (let attempts = 1; ; attempts++) {
        if (attempts === maxLoops) return { answer: draft.value, attempts, verdicts };
        const conversation = [user(task.question), assistant(draft.text)];
        const verdict = await verifier(conversation);
        verdicts.push({ answer: draft.value, ...(verdict.valid ? { approved: verdict.value === approve } : {}) });
        const decision = verdict.value ?? (onUnreadableVerdict === 'approve' ? approve : reject);
        if (decision === approve) return { answer: draft.value, attempts, verdicts };
        draft = await solver([...conversation, user(feedback(verdict))]);
      }
    },
    reward({ outcome, task }) {
      const correct = gradeMath(outcome.answer, task.answer);
      const team = attemptCost === 0 ? { correct } : { correct, attempts: attemptCost * (1 - outcome.attempts) };
      if (verdictReward === undefined) return team;
      return { team, agents: { verifier: { verdicts: verdictReward * (trueVerdicts(outcome, task.answer) ?? 0) } } };
    },
    metrics: ({ outcome, task }) => ({ trueVerdicts: trueVerdicts(outcome, task.answer) }),
  });
}

/** The share of verdicts that are true; undefined if there are no verdicts. */
function trueVerdicts({ verdicts }: SolverVerifierOutcome, reference: string): number | undefined {
  if (verdicts.length === 0) return undefined;
  return mean(verdicts.map(({ answer, approved }) => Number(approved === gradeMath(answer, reference))));
}
