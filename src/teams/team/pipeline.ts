import { madeWith } from '@drmas/engine/errors';
import { z } from 'zod';
import { gradeMath } from '../tasks/grading/math.js';
import { type Agent, type AgentSpec, agent } from './agent.js';
import { boxed } from './parsers.js';
import { defineTeam, type Reward, type RewardContext, type Team } from './team.js';

const pipelineTask = z.object({ question: z.string(), answer: z.string() });
/** The data of a task of `pipeline`. */
export type PipelineTask = z.output<typeof pipelineTask>;

/** An agent of a pipeline. Without `parse` its whole text is its value; the last agent's is the content of its box. */
export interface PipelineAgent extends AgentSpec<string> {
  /** The probability of its call in an episode. Default 1; the last agent is always called. */
  readonly probability?: number;
}

/** A reply of an agent of a pipeline. */
export interface PipelineReply {
  readonly agent: string;
  readonly text: string;
}

/** The outcome of an episode of `pipeline`. */
export interface PipelineOutcome {
  /** The last agent's value. */
  readonly answer: string | undefined;
  /** The replies in order. */
  readonly said: readonly PipelineReply[];
}

/** The options of `pipeline`. */
export interface PipelineOptions<Name extends string> {
  /** Two to eight agents by name, in the order of their calls. */
  readonly agents: { readonly [N in Name]: PipelineAgent };
  /** The reward. Default: 1 for all agents when the answer is right. */
  readonly reward?: (
    context: RewardContext<PipelineTask, PipelineOutcome>,
  ) => Reward<NoInfer<Name>> | Promise<Reward<NoInfer<Name>>>;
  /** The prompt of an agent. Default: the question, then the replies so far, one a line. */
  readonly prompt?: (request: {
    readonly agent: NoInfer<Name>;
    readonly question: string;
    readonly said: readonly PipelineReply[];
  }) => string;
}

const MOST_AGENTS = 8;

const optionsSchema = z.strictObject({
  agents: z
    .record(z.string(), z.looseObject({ probability: z.number().min(0).max(1).optional() }))
    .refine(
      (agents) => Object.keys(agents).length >= 2 && Object.keys(agents).length <= MOST_AGENTS,
      `expected 2 to ${MOST_AGENTS} agents`,
    )
    .refine(
      (agents) => (Object.values(agents).at(-1)?.probability ?? 1) === 1,
      'the last agent answers, its probability must be 1',
    ),
  reward: z.custom((value) => typeof value === 'function', 'expected a function').optional(),
  prompt: z.custom((value) => typeof value === 'function', 'expected a function').optional(),
});

/**
 * Creates a team of agents that are called one after another. Each agent is called with its own probability; the last
 * agent is always called, and its value is the answer. The team is for studies of agents that act at different
 * frequencies: the frequency of each agent's calls is a setting, and its reward can be one. The choice of agents does
 * not depend on the replies. Unequal frequencies alone therefore leave every agent with the team's reward statistics
 * (a predicted inflation of 1).
 *
 * @throws ArgumentError naming the option that is wrong.
 *
 * @example
 * ```ts
 * import { pipeline } from 'drmas';
 *
 * const team = pipeline({ agents: { writer: { probability: 0.5 }, editor: { probability: 1 } } });
 * ```
 */
export function pipeline<Name extends string>(
  options: PipelineOptions<Name>,
): Team<PipelineTask, { readonly [N in Name]: Agent<string> }, PipelineOutcome> {
  madeWith(optionsSchema, options, 'pipeline');
  const specs: Readonly<Record<string, PipelineAgent>> = options.agents;
  const names = Object.keys(specs) as Name[];
  const { prompt = plainPrompt, reward = rightAnswer } = options;
  const agents = Object.fromEntries(
    names.map((name, index) => {
      const { probability: _, parse = index === names.length - 1 ? boxed : wholeText, ...spec } = specs[name] ?? {};
      return [name, agent({ ...spec, parse })];
    }),
  ) as { [N in Name]: Agent<string> };

  return defineTeam({
    name: 'pipeline',
    task: pipelineTask,
    agents,
    async play({ task: { question }, agents, random }) {
      // The calls are drawn before the first reply, so that they do not depend on the replies.
      const called = names.filter((name) => random.chance(specs[name]?.probability ?? 1));
      const said: PipelineReply[] = [];
      let answer: string | undefined;
      for (const name of called) {
        const reply = await agents[name](prompt({ agent: name, question, said: [...said] }));
        said.push({ agent: name, text: reply.text });
        answer = reply.value;
      }
      return { answer, said };
    },
    reward,
  });
}

const wholeText = (text: string) => text;

function rightAnswer({ outcome, task }: RewardContext<PipelineTask, PipelineOutcome>): Reward<never> {
  return { correct: gradeMath(outcome.answer, task.answer) };
}

function plainPrompt({
  question,
  said,
}: {
  readonly question: string;
  readonly said: readonly PipelineReply[];
}): string {
  return [question, ...said.map(({ agent, text }) => `${agent}: ${text}`)].join('\n');
}
