import type { Sampling } from '@drmas/engine/contract';
import { ArgumentError } from '@drmas/engine/errors';
import type { Episode } from '@drmas/engine/nouns';
import { type ToolFormatName, toolFormat } from '@drmas/engine/tool-calls';
import { rolloutContext } from '../../gateway/rollouts.js';
import type { Agents, Team } from '../../teams/index.js';
import { EpisodeFailure, inProcessExecutor, type RolloutContext } from '../../teams/rollout.js';
import { type Script, type ScriptedSampler, scriptedSampler } from './scripted-sampler.js';

const sampling: Sampling = { temperature: 1, topP: 1, topK: 0, maxTokens: 16 };

/**
 * A context in which a scripted policy answers for every agent, unless `changes` replaces a part. Prompts may have 4096
 * tokens.
 */
export function scriptedContext(
  team: Team,
  sampler: ScriptedSampler,
  changes: Partial<RolloutContext> = {},
): RolloutContext {
  const agents = Object.entries(team.agents).map(([name, { invalidPenalty = 0 }]) => [
    name,
    { policy: name, sampling, invalidPenalty, judges: true },
  ]);
  const policies = Object.keys(team.agents).map((name) => [name, sampler.policy(name)]);
  const settings = { agents: Object.fromEntries(agents), seed: 1, maxTurns: 16, timeoutMs: 5_000 };
  return { ...rolloutContext(settings, Object.fromEntries(policies)), ...changes };
}

/** A response that calls tools; it is written in the agent's format. */
export interface ScriptedToolCalls {
  readonly content?: string;
  /** The arguments as JSON text, or as the object. */
  readonly toolCalls: readonly {
    readonly name: string;
    readonly arguments: string | Readonly<Record<string, unknown>>;
  }[];
}

/** For each agent the texts of its calls in order, or the tools that it calls. */
export type Lines<A extends Agents> = { readonly [Name in keyof A]?: readonly (string | ScriptedToolCalls)[] };

/** An episode whose outcome has the type that the team's `play` returns. */
export type PlayedEpisode<Data, Outcome> = Omit<Episode<Data>, 'outcome'> & { readonly outcome: Outcome };

/**
 * Plays one episode of a team without a model: agents answer with the given texts, and make the given tool calls. The
 * episode has the turns as the agents' parsers read them, the outcome and the score. The reward may call any agent. A
 * `rewardGroup` gets a group of one.
 *
 * @throws EpisodeFailure when the episode fails, for example because `play` throws or an agent is called more often
 * than it has texts; ArgumentError when the task does not fit the team's schema, or the team has no agent of a text's
 * name
 *
 * @example
 * ```ts
 * import { solverVerifier } from 'drmas';
 * import { playScripted } from 'drmas/testing';
 *
 * const task = { question: '1+1', answer: '2' };
 * const lines = { solver: ['\\boxed{2}'], verifier: ['<approve>'] };
 * const { score } = await playScripted(solverVerifier({ approve: '<approve>', reject: '<reject>' }), task, lines);
 * ```
 */
export async function playScripted<Data, A extends Agents, Outcome>(
  team: Team<Data, A, Outcome>,
  task: Data,
  lines: Lines<A> | Script,
): Promise<PlayedEpisode<Data, Outcome>> {
  const checked = team.task.safeParse(task);
  if (!checked.success) throw new ArgumentError(`the task does not fit the team's schema: ${checked.error.message}`);
  const general = team as unknown as Team;
  const sampler = scriptedSampler(typeof lines === 'function' ? lines : scriptOf(team, lines));
  const roomy = Object.keys(team.agents).map((name) => [name, sampler.policy(name, 2 ** 20)]);
  const executor = inProcessExecutor(scriptedContext(general, sampler, { policies: Object.fromEntries(roomy) }));
  const tasks = [{ id: 'scripted', data: checked.data }];
  const [group] = await executor.playGroups({ team: general, tasks, groupSize: 1, phase: 'evaluation', step: 0 });
  const [episode] = group?.episodes ?? [];
  if (episode?.failure) {
    const { reason, message, ...facts } = episode.failure;
    throw new EpisodeFailure(reason, message, facts);
  }
  return episode as PlayedEpisode<Data, Outcome>;
}

/** A script that reads each agent's texts from first to last. */
function scriptOf<A extends Agents>(team: Pick<Team<never, A>, 'agents'>, lines: Lines<A>): Script {
  const texts = new Map(Object.entries<readonly (string | ScriptedToolCalls)[] | undefined>(lines));
  for (const name of texts.keys()) {
    if (!Object.hasOwn(team.agents, name))
      throw new ArgumentError(`no agent '${name}'; expected one of ${Object.keys(team.agents).join(', ')}`);
  }
  const next = new Map<string, number>();
  return ({ policy, prompt }) => {
    const at = next.get(policy) ?? 0;
    next.set(policy, at + 1);
    const text = texts.get(policy)?.[at];
    if (text === undefined)
      throw new ArgumentError(
        `agent '${policy}' was called ${at + 1} times; expected at most ${at} calls, the number of its texts`,
      );
    return typeof text === 'string' ? text : written(text, prompt, team.agents[policy]?.tools);
  };
}

function written(
  { content = '', toolCalls }: ScriptedToolCalls,
  prompt: string,
  name: ToolFormatName = 'plain',
): string {
  const calls = toolCalls.map(({ name, arguments: values }) => ({
    name,
    arguments: typeof values === 'string' ? values : JSON.stringify(values),
  }));
  const format = toolFormat(name);
  const whole = format.write({ content, calls }, []);
  // If the call is required, its beginning is the end of the prompt.
  const begun = [format.opening(calls[0]?.name), format.opening(undefined)].find(
    (beginning) => whole.startsWith(beginning) && prompt.endsWith(beginning),
  );
  return whole.slice(begun?.length ?? 0);
}
