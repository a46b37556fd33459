import { z } from 'zod';
import { ArgumentError } from '../core/errors.js';
import { issuesText } from '../core/issues.js';
import { assistant, type Message, user } from '../core/message.js';
import { calculate } from '../tasks/generated/calculator.js';
import { gradeMath } from '../tasks/grading/math.js';
import { agent } from './agent.js';
import { boxed, oneOf, type Parser, tagged } from './parsers.js';
import { defineTeam, type Reply } from './team.js';

export interface PlannerExecutorVerifierOptions {
  /** How often a plan may be made. Default 2. */
  readonly maxLoops?: number;
  /** How often the executor may use the calculator for one plan. Default 4. */
  readonly maxCalls?: number;
  /** What the verifier says to end the episode. Default `<approve>`. */
  readonly approve?: string;
  /** What the verifier says to have a new plan made. Default `<reject>`. */
  readonly reject?: string;
  /** What a verdict without exactly one of the two words counts as. Default 'approve', so that garbage buys nothing. */
  readonly onUnreadableVerdict?: 'approve' | 'reject';
  readonly planner?: { readonly system?: string };
  readonly executor?: { readonly system?: string };
  readonly verifier?: { readonly system?: string };
  /** What an empty plan, a step that is neither a calculation nor an answer, or no verdict costs its turn. Default 0.1. */
  readonly invalidPenalty?: number;
  /** The executor's tool: the result of an expression, `undefined` when it has none. Default: `calculate`. */
  readonly calculator?: (expression: string) => string | undefined;
}

export interface PlannerExecutorVerifierOutcome {
  /** The executor's last boxed answer, `undefined` when the last plan led to none. */
  readonly answer: string | undefined;
  /** Plans that were made. */
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

/** What the executor wrote: a calculation to be done for it, or its answer. */
type Step =
  | { readonly type: 'calculation'; readonly expression: string }
  | { readonly type: 'answer'; readonly answer: string };

/** A text with both is an answer. */
const step: Parser<Step> = (text) => {
  const answer = boxed(text);
  if (answer !== undefined) return { type: 'answer', answer };
  const expression = tagged('calculate')(text);
  return expression === undefined ? undefined : { type: 'calculation', expression };
};

/**
 * A planner writes a plan, an executor carries it out with a calculator, a verifier judges the result. Approval ends the
 * episode; rejection has a new plan made, in view of the old one. An attempt ends at the executor's answer, and without an
 * answer at a step that is neither that nor a calculation, or at one calculation too many. An attempt without an answer is
 * not judged but tried again; the last attempt is not judged either, and counts.
 *
 * @throws ArgumentError naming the option that is wrong.
 */
export function plannerExecutorVerifier(options: PlannerExecutorVerifierOptions = {}) {
  const checked = optionsSchema.safeParse(options);
  if (!checked.success) throw new ArgumentError(`plannerExecutorVerifier(...): ${issuesText(checked.error.issues)}`);
  const { maxLoops, maxCalls, approve, reject, onUnreadableVerdict, invalidPenalty, calculator } = checked.data;
  const { planner: plannerRole, executor: executorRole, verifier: verifierRole } = checked.data;

  /** The executor's last reply: its answer, or where it went wrong. */
  async function execute(
    executor: (messages: Message[]) => Promise<Reply<Step>>,
    asked: Message,
  ): Promise<Reply<Step>> {
    const said: Message[] = [asked];
    for (let calls = 0; ; calls++) {
      const reply = await executor(said);
      if (reply.value?.type !== 'calculation' || calls === maxCalls) return reply;
      said.push(assistant(reply.text), user(calculator(reply.value.expression) ?? 'error'));
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
        let said = reject;
        if (answer !== undefined) {
          const verdict = await verifier([user(task.question), assistant(result.text)]);
          if ((verdict.value ?? (onUnreadableVerdict === 'approve' ? approve : reject)) === approve)
            return { answer, plans };
          said = verdict.text || reject;
        }
        plan = await planner([user(task.question), assistant(plan.text), user(said)]);
      }
    },
    reward: ({ outcome, task }) => ({ correct: gradeMath(outcome.answer, task.answer) }),
  });
}
