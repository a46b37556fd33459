import { z } from 'zod';
import { ArgumentError } from '../core/errors.js';
import { issuesText } from '../core/issues.js';
import { gradeMath } from '../tasks/grading/math.js';
import { type Agent, type AgentSpec, agent } from './agent.js';
import { boxed } from './parsers.js';
import { defineTeam, type Reward, type RewardContext, type Team } from './team.js';

const pipelineTask = z.object({ question: z.string(), answer: z.string() });
type PipelineTask = z.output<typeof pipelineTask>;

/** An agent of a pipeline. Without `parse` its whole text is its value; the last agent's is the content of its box. */
export interface PipelineAgent extends AgentSpec<string> {
  /** How likely it is called in an episode. Default 1; the last agent is always called. */
  readonly probability?: number;
}

/** What was said before, in order; agents that were not called are missing. */
export interface Said {
  readonly agent: string;
  readonly text: string;
}

export interface PipelineOutcome {
  /** The last agent's value. */
  readonly answer: string | undefined;
  readonly said: readonly Said[];
}

export interface PipelineOptions<Name extends string> {
  /** Two to eight agents by name, in the order of their calls. */
  readonly agents: { readonly [N in Name]: PipelineAgent };
  /** Default: 1 for everybody when the answer is right. */
  readonly reward?: (
    context: RewardContext<PipelineTask, PipelineOutcome>,
  ) => Reward<NoInfer<Name>> | Promise<Reward<NoInfer<Name>>>;
  /** What an agent is shown. Default: the question, then what was said, a line each. */
  readonly prompt?: (request: {
    readonly agent: NoInfer<Name>;
    readonly question: string;
    readonly said: readonly Said[];
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
 * Agents that speak one after another, each called with a probability of its own, the last one always; its value is the
 * answer. For studying teams whose agents are called unevenly: how often each one acts is a setting, and what each earns can be.
 *
 * @throws ArgumentError naming the option that is wrong.
 */
export function pipeline<Name extends string>(
  options: PipelineOptions<Name>,
): Team<PipelineTask, { readonly [N in Name]: Agent<string> }, PipelineOutcome> {
  const checked = optionsSchema.safeParse(options);
  if (!checked.success) throw new ArgumentError(`pipeline(...): ${issuesText(checked.error.issues)}`);
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
      // Drawn before anybody speaks, so that who is called does not depend on what is said.
      const called = names.filter((name) => random.chance(specs[name]?.probability ?? 1));
      const said: Said[] = [];
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

function plainPrompt({ question, said }: { readonly question: string; readonly said: readonly Said[] }): string {
  return [question, ...said.map(({ agent, text }) => `${agent}: ${text}`)].join('\n');
}
