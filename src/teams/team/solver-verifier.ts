import { madeWith } from '@drmas/engine/errors';
import { mean } from '@drmas/engine/math';
import { assistant, user } from '@drmas/engine/nouns';
import { z } from 'zod';
import { gradeMath } from '../tasks/grading/math.js';
import { agent } from './agent.js';
import { inTags, paperSolution, paperVerdict, requireForm, shownVerdict } from './paper/paper-outputs.js';
import { outputOf, paperMathPrompt, paperSystem } from './paper/paper-prompts.js';
import { boxed, oneOf } from './parsers.js';
import { defineTeam, type Reply } from './team.js';

/** The options of `solverVerifier`. */
export interface SolverVerifierOptions {
  /**
   * 'paper': the team plays as in the Dr. MAS paper's code. An agent's prompt is one user message with all drafts and
   * verdicts so far. A verdict between `<verify>` and `</verify>` is "approve" or "reject", without the spaces around
   * it; one without these words counts as approval, and one with Chinese characters is used and penalised. `approve`,
   * `reject`, `onUnreadableVerdict` and `feedback` belong to the other form.
   */
  readonly form?: 'paper';
  /** 'paper': the prompts of the Dr. MAS paper's code. Only with `form: 'paper'`, without `system`. */
  readonly prompts?: 'paper';
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

/** The outcome of an episode of `solverVerifier`. */
export interface SolverVerifierOutcome {
  /** The last draft's boxed answer. */
  readonly answer: string | undefined;
  /** The number of drafts. */
  readonly attempts: number;
  /** The verdicts in order. */
  readonly verdicts: readonly DraftVerdict[];
}

/** The verifier's verdict on one draft. */
export interface DraftVerdict {
  /** The boxed answer of the draft that was judged. */
  readonly answer: string | undefined;
  /** Absent if the verdict was unreadable. */
  readonly approved?: boolean;
}

const optionsSchema = z
  .strictObject({
    form: z.literal('paper').optional(),
    prompts: z.literal('paper').optional(),
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
/** The options that the paper's form decides. */
const ofOwnForm = ['approve', 'reject', 'onUnreadableVerdict', 'feedback'] as const;

/**
 * Creates a team in which a solver writes a draft and a verifier judges it. Approval ends the episode; after a
 * rejection the solver sees the verdict and writes another draft. A draft of the last attempt is not judged. The last
 * draft counts. The team earns 1 for a right answer; its metric `trueVerdicts` is the share of verdicts that are true.
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
  const checked = madeWith(optionsSchema, options, 'solverVerifier');
  requireForm('solverVerifier', options, ofOwnForm, [options.solver, options.verifier]);
  const { maxLoops, onUnreadableVerdict, invalidPenalty, verdictReward, attemptCost, prompts } = checked;
  const isPaper = checked.form === 'paper';
  const { approve, reject } = isPaper ? paperWords : checked;
  const written = isPaper ? inTags : (word: string) => word;
  const { feedback = (verdict) => verdict.text || reject } = checked;
  const systemOf = (name: 'solver' | 'verifier', fallback: string) =>
    options[name]?.system ?? (prompts === 'paper' ? paperSystem : fallback);
  const conversation = (agent: 'solver' | 'verifier', question: string, replies: readonly Reply<string>[]) => {
    if (isPaper) {
      const context = replies.map((reply, n) =>
        n % 2 === 0 ? outputOf('Solver Agent', reply.text) : outputOf('Verifier Agent', shownVerdict(reply.text)),
      );
      return [
        user(
          prompts === 'paper' ? paperMathPrompt(agent, question, context.join('')) : [question, ...context].join('\n'),
        ),
      ];
    }
    const [draft, verdict] = replies.slice(agent === 'solver' ? -2 : -1);
    return [
      user(question),
      ...(draft === undefined ? [] : [assistant(draft.text)]),
      ...(verdict === undefined ? [] : [user(feedback(verdict))]),
    ];
  };

  return defineTeam({
    name: 'solver-verifier',
    task: z.object({ question: z.string(), answer: z.string() }),
    agents: {
      solver: agent({
        system: systemOf('solver', 'Solve the problem step by step. End with the answer in \\boxed{...}.'),
        parse: isPaper ? paperSolution : boxed,
        invalidPenalty,
      }),
      verifier: agent({
        system: systemOf(
          'verifier',
          `Check the solution. End with ${written(approve)} if the answer is right, or with ${written(reject)} if it is not.`,
        ),
        parse: isPaper ? paperVerdict([approve, reject], shownVerdict) : oneOf(approve, reject),
        invalidPenalty,
      }),
    },
    async play({ task: { question }, agents: { solver, verifier } }): Promise<SolverVerifierOutcome> {
      const step = isPaper ? { envStep: 0, observation: question } : {};
      const replies: Reply<string>[] = [];
      const verdicts: DraftVerdict[] = [];
      for (let attempts = 1; ; attempts++) {
        const draft = await solver(conversation('solver', question, replies), step);
        // A solution in the paper's form may be valid without an answer.
        const answer = draft.value || undefined;
        if (attempts === maxLoops) return { answer, attempts, verdicts };
        replies.push(draft);
        const verdict = await verifier(conversation('verifier', question, replies), step);
        replies.push(verdict);
        verdicts.push({ answer, ...(verdict.valid ? { approved: verdict.value === approve } : {}) });
        const decision = verdict.value ?? (onUnreadableVerdict === 'approve' ? approve : reject);
        if (decision === approve) return { answer, attempts, verdicts };
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

const paperWords = { approve: 'approve', reject: 'reject' };

function trueVerdicts({ verdicts }: SolverVerifierOutcome, reference: string): number | undefined {
  if (verdicts.length === 0) return undefined;
  return mean(verdicts.map(({ answer, approved }) => Number(approved === gradeMath(answer, reference))));
}
