import { madeWith } from '@drmas/engine/errors';
import { assistant, type Message, user } from '@drmas/engine/nouns';
import { z } from 'zod';
import { calculate } from '../tasks/generated/calculator.js';
import { gradeMath } from '../tasks/grading/math.js';
import { agent } from './agent.js';
import { boxed, oneOf, type Parser, tagged } from './parsers.js';
import { defineTeam, type Reply } from './team.js';

/** The options of `plannerExecutorVerifier`. */
export interface PlannerExecutorVerifierOptions {
  /** The most plans in an episode. Default 2. */
  readonly maxLoops?: number;
  /** The most calculations for one plan. Default 4. */
  readonly maxCalls?: number;
  /** The verifier's word that ends the episode. Default `<approve>`. */
  readonly approve?: string;
  /** The verifier's word that requests a new plan. Default `<reject>`. */
  readonly reject?: string;
  /**
   * The meaning of a verdict without exactly one of the two words. Default 'approve', so that an unreadable verdict
   * does not earn another attempt.
   */
  readonly onUnreadableVerdict?: 'approve' | 'reject';
  /** The planner's system prompt. Default: a prompt of this team. */
  readonly planner?: { readonly system?: string };
  /** The executor's system prompt. Default: a prompt of this team. */
  readonly executor?: { readonly system?: string };
  /** The verifier's system prompt. Default: a prompt of this team. */
  readonly verifier?: { readonly system?: string };
  /**
   * The penalty for an empty plan, for a step that is neither a calculation nor an answer, and for no verdict. Default
   * 0.1.
   */
  readonly invalidPenalty?: number;
  /** The executor's tool: the result of an expression, `undefined` when it has none. Default: `calculate`. */
  readonly calculator?: (expression: string) => string | undefined;
}

/** The outcome of an episode of `plannerExecutorVerifier`. */
export interface PlannerExecutorVerifierOutcome {
  /** The executor's last boxed answer, `undefined` when the last plan led to none. */
  readonly answer: string | undefined;
  /** The number of plans. */
  readonly plans: number;
}

const role = z.strictObject({ system: z.string().optional() }).optional();
const optionsSchema = z
  .strictObject({
    maxLoops: z.int().min(1).default(2),
    maxCalls: z.int().min(0).default(4),
    approve: z.string().min(1).default('<approve>'),
    reject: z.string().min(1).default('<reject>'),
    onUnreadableVerdict: z.enum(['approve', 'reject']).default('approve'),
    planner: role,
    executor: role,
    verifier: role,
    invalidPenalty: z.number().min(0).default(0.1),
    calculator: z
      .custom<typeof calculate>((value) => typeof value === 'function', 'expected a function')
      .default(() => calculate),
  })
  .refine(({ approve, reject }) => approve !== reject, 'approve and reject must differ');

/** The content of an executor's reply: a calculation to carry out, or its answer. */
export type PlanStep =
  | { readonly type: 'calculation'; readonly expression: string }
  | { readonly type: 'answer'; readonly answer: string };

/** The parser of the executor's replies. A text with both is an answer. */
const step: Parser<PlanStep> = (text) => {
  const answer = boxed(text);
  if (answer !== undefined) return { type: 'answer', answer };
  const expression = tagged('calculate')(text);
  return expression === undefined ? undefined : { type: 'calculation', expression };
};

/**
 * Creates a team in which a planner writes a plan, an executor carries it out with a calculator, and a verifier judges
 * the result. Approval ends the episode; rejection requests a new plan, and the planner sees the old one. An attempt
 * ends with the executor's answer, with an invalid step, or with one calculation too many. An attempt without an answer
 * is repeated without a verdict; the last attempt needs no verdict and counts.
 *
 * @throws ArgumentError naming the option that is wrong.
 *
 * @example
 * ```ts
 * import { plannerExecutorVerifier } from 'drmas';
 *
 * const team = plannerExecutorVerifier();
 * ```
 */
export function plannerExecutorVerifier(options: PlannerExecutorVerifierOptions = {}) {
  const checked = madeWith(optionsSchema, options, 'plannerExecutorVerifier');
  const { maxLoops, maxCalls, approve, reject, onUnreadableVerdict, invalidPenalty, calculator } = checked;
  const { planner: plannerRole, executor: executorRole, verifier: verifierRole } = checked;

  /** Runs the executor and returns its last reply: its answer, or the step at which it failed. */
  async function execute(
    executor: (messages: Message[]) => Promise<Reply<PlanStep>>,
    request: Message,
  ): Promise<Reply<PlanStep>> {
    const messages: Message[] = [request];
    for (let calls = 0; ; calls++) {
      const reply = await executor(messages);
      if (reply.value?.type !== 'calculation' || calls === maxCalls) return reply;
      messages.push(assistant(reply.text), user(calculator(reply.value.expression) ?? 'error'));
    }
  }

  return defineTeam({
    name: 'planner-executor-verifier',
    task: z.object({ question: z.string(), answer: z.string() }),
    agents: {
      planner: agent({
        system: plannerRole?.system ?? 'Write a short plan for solving the problem. Do not solve it.',
        parse: (text) => text.trim() || undefined,
        invalidPenalty,
      }),
      executor: agent({
        system:
          executorRole?.system ??
          'Carry out the plan. For a calculation write <calculate>12*3</calculate> and wait for its result. End with the answer in \\boxed{...}.',
        parse: step,
        invalidPenalty,
      }),
      verifier: agent({
        system:
          verifierRole?.system ??
          `Check the answer. End with ${approve} if it is right, or with ${reject} if a new plan is needed.`,
        parse: oneOf(approve, reject),
        invalidPenalty,
      }),
    },
    async play({ task, agents: { planner, executor, verifier } }): Promise<PlannerExecutorVerifierOutcome> {
      let plan = await planner(task.question);
      for (let plans = 1; ; plans++) {
        const result = await execute(executor, user(plan.valid ? `${task.question}\n${plan.value}` : task.question));
        const answer = result.value?.type === 'answer' ? result.value.answer : undefined;
        if (plans === maxLoops) return { answer, plans };
        let feedback = reject;
        if (answer !== undefined) {
          const verdict = await verifier([user(task.question), assistant(result.text)]);
          if ((verdict.value ?? (onUnreadableVerdict === 'approve' ? approve : reject)) === approve)
            return { answer, plans };
          feedback = verdict.text || reject;
        }
        plan = await planner([user(task.question), assistant(plan.text), user(feedback)]);
      }
    },
    reward: ({ outcome, task }) => ({ correct: gradeMath(outcome.answer, task.answer) }),
  });
}
