import { madeWith } from '@drmas/engine/errors';
import type { RandomStream } from '@drmas/engine/math';
import type { Episode, FinishReason, JsonSchema, Message, Tool, ToolCall, ToolChoice } from '@drmas/engine/nouns';
import { z } from 'zod';
import type { Agent } from './agent.js';
import type { AgentWays, EpisodeWays, GatewayConnection } from './agent-adapters.js';
import { asZod, type StandardSchema, schemaProblem } from './standard-schema.js';

/** The agents of a team by name. */
export type Agents = Readonly<Record<string, Agent>>;

/** An agent's reply. */
export type Reply<Value = unknown> = {
  /** The turn's id, which no other turn of the run has. */
  readonly id: string;
  /** The response without its stop token. */
  readonly text: string;
  /** The text without tool calls and without the model's reasoning. */
  readonly content: string;
  /** The model's reasoning before its answer, if any: the text between `<think>` and `</think>`, or Magistral's. */
  readonly reasoning?: string;
  /** The tool calls; empty if the agent was offered no tools or the turn is invalid. */
  readonly toolCalls: readonly ToolCall[];
  readonly finishReason: FinishReason;
  /** The position of this call among the calls of the episode. */
  readonly turn: number;
} & (
  | { readonly valid: true; readonly value: Value }
  | { readonly valid: false; readonly value: undefined }
  /** The agent's parser returned `{ value, penalised: true }`. */
  | { readonly valid: false; readonly value: Value }
);

/** The options of a call of an agent, its second argument. */
export interface AskOptions {
  /**
   * A name for the state that the agent sees; estimators such as GiGPO compare turns with equal observations. Default:
   * the text of the agent's messages. With a shorter name, turns can be compared even if their messages differ in
   * irrelevant details.
   */
  readonly observation?: string;
  /**
   * The number of the environment's step, from 0, that this call belongs to. Calls with the same number share the step
   * and its reward in estimators that compare or discount steps (GiGPO, MAGRPO, AT-GRPO, GAE over an episode). Give the
   * step for all calls of an episode or for none; without it, each call counts as a separate step.
   */
  readonly envStep?: number;
  /**
   * The tools that the agent may call. A turn with correct tool calls is valid and skips the parser: its value is
   * `undefined`. A turn is invalid if its calls cannot be read, name another tool or do not fit the tool's schema.
   */
  readonly tools?: readonly Tool[];
  /** Default 'auto'. 'required' and a name begin the response with the beginning of a call. */
  readonly toolChoice?: ToolChoice;
  /** The most tokens of the response. The agent's own `maxTokens` applies if it is smaller. */
  readonly maxTokens?: number;
  /** Cancels the call: its promise rejects with the signal's reason, and drmas keeps nothing of the call. */
  readonly signal?: AbortSignal | undefined;
  /**
   * The JSON schema of the response. drmas adds it to the agent's system prompt and does not constrain sampling. A
   * response that is not JSON of this schema is invalid; other responses go to the agent's parser.
   */
  readonly responseSchema?: JsonSchema;
}

/**
 * A call of an agent. A string is one user message; drmas puts the agent's system prompt in front. If the episode is
 * over, or ends or fails before the reply arrives, the promise rejects with an EpisodeOverError and `signal` fires. You
 * need not catch either.
 */
export type Ask<Value = unknown> = (input: string | readonly Message[], options?: AskOptions) => Promise<Reply<Value>>;

type AgentValue<A> = A extends Agent<infer Value> ? Value : never;

/** The limits of a team's loops by name, such as `{ rounds: 4 }`. */
export type Limits = Readonly<Record<string, number>>;

/** The argument of `play`: the task, the agents as functions, and what an episode has besides. */
export interface PlayContext<Data, A extends Agents, L extends Limits = Limits> extends EpisodeWays {
  /** Frozen, because all episodes of the task share it. Dates, maps, sets and typed arrays in it are the episode's. */
  readonly task: Data;
  /** The agents as functions. Replies arrive in the order of the calls, so that concurrent calls are reproducible. */
  readonly agents: { readonly [Name in keyof A]: Ask<AgentValue<A[Name]>> & AgentWays };
  /** The agents over HTTP, for programs in any language. It requires a `gateway` in the recipe. */
  readonly gateway: GatewayConnection;
  /** The team's limits, as the recipe sets them. */
  readonly limits: L;
  /** Random numbers for the team's decisions: a stream of this episode alone, equal in every repetition of the run. */
  readonly random: RandomStream;
  /** Fires when the episode is over: ended, failed, timed out or interrupted. */
  readonly signal: AbortSignal;
  /**
   * Keeps a value in the episode's file, for instance a tool's result. Numbers and booleans also become metrics: steps
   * and evaluations report the mean within each episode, averaged over episodes.
   * @throws ArgumentError for a number that is not finite, or more and larger values than an episode may keep
   */
  readonly log: (name: string, value: unknown) => void;
}

/** The argument of `reward`, `success` and `metrics`: an episode that has ended. */
export interface RewardContext<Data, Outcome, A extends Agents = Agents> {
  readonly task: Data;
  /** The value that `play` returned. */
  readonly outcome: Outcome;
  /** The episode's turns, for rewards that judge single turns. */
  readonly episode: Pick<Episode<Data>, 'task' | 'sample' | 'turns'>;
  /**
   * The team's frozen agents, to judge the episode. Their replies are recorded with the episode, and no agent learns
   * from them. Agents that train cannot be called here, because their replies would have no reward.
   */
  readonly agents: { readonly [Name in keyof A]: Ask<AgentValue<A[Name]>> };
  readonly signal: AbortSignal;
}

/** The first task of a run, for a team that checks the services that its episodes need. */
export interface PrepareContext<Data> {
  readonly task: Data;
  /** Fires when the run is interrupted. */
  readonly signal: AbortSignal;
}

/** An episode of a group that is rewarded together. */
export interface RankedEpisode<Data, Outcome> extends Pick<Episode<Data>, 'sample' | 'turns'> {
  /** The value that `play` returned. */
  readonly outcome: Outcome;
}

/** The argument of `rewardGroup`: the episodes of one task in one step. */
export interface GroupRewardContext<Data, Outcome, A extends Agents = Agents>
  extends Pick<RewardContext<Data, Outcome, A>, 'task' | 'agents' | 'signal'> {
  /** The group's episodes that did not fail, in the order of their samples; at least one. */
  readonly episodes: readonly RankedEpisode<Data, Outcome>[];
}

/** A reward; `true` counts 1, `false` 0. */
export type RewardValue = number | boolean;

/** A reward in named parts, which is their sum. */
export type RewardParts = Readonly<Record<string, RewardValue>>;

/** The reward of one turn, which is added to the episode's. */
export interface TurnReward {
  /** The turn's position in the episode: `turn` of a reply, or of one of `episode.turns`. */
  readonly turn: number;
  readonly value: RewardValue;
  /**
   * The duration (>= 0) of the turn's effects in any one unit, such as the seconds of a tool. drmas stores it with the
   * turn.
   */
  readonly duration?: number;
}

/**
 * The reward of an episode: one value or named parts for all agents; or, with the key `team`, the team's reward
 * together with individual rewards of agents and of single turns.
 */
export type Reward<Name extends string = string> =
  | RewardValue
  | RewardParts
  | {
      readonly team: RewardValue | RewardParts;
      readonly agents?: { readonly [N in Name]?: RewardValue | RewardParts } | undefined;
      readonly turns?: readonly TurnReward[] | undefined;
    };

/** Numbers that a team measures, by name; `undefined` if an episode has nothing to measure. */
export type Metrics = Readonly<Record<string, RewardValue | undefined>>;

/** The agent names in a reward; the type distributes over the branches of a union. */
type Rewarded<R> = R extends { readonly agents?: infer Each }
  ? Each extends object
    ? Spelled<keyof Each>
    : never
  : never;
type Spelled<Key> = string extends Key ? never : Key;

/** A type that refuses a reward for an agent which the team does not have. */
export type OnlyAgents<R, Name> = [Exclude<Rewarded<R>, Name>] extends [never]
  ? unknown
  : { readonly agents: { readonly 'not an agent of this team': Exclude<Rewarded<R>, Name> } };

/** A team: agents that work on a task together. */
export interface Team<Data = unknown, A extends Agents = Agents, Outcome = unknown> {
  readonly name: string;
  /** The schema that types and validates the data of a task. */
  readonly task: z.ZodType<Data>;
  readonly agents: A;
  /** The limits of its loops, which a recipe may lower or raise. */
  readonly limits?: Limits;
  /** Checks, before a run, what its episodes need. */
  prepare?(context: PrepareContext<Data>): Promise<void>;
  /** Plays one episode, as one async function. */
  play(context: PlayContext<Data, A>): Promise<Outcome>;
  reward?(context: RewardContext<Data, Outcome, A>): Reward | Promise<Reward>;
  rewardGroup?(context: GroupRewardContext<Data, Outcome, A>): readonly Reward[] | Promise<readonly Reward[]>;
  success?(context: RewardContext<Data, Outcome, A>): RewardValue | Promise<RewardValue>;
  metrics?(context: RewardContext<Data, Outcome, A>): Metrics | Promise<Metrics>;
}

/** The argument of `defineTeam`: the agents, how they play a task, and the reward. */
export interface TeamDefinition<
  Data,
  A extends Agents,
  Outcome,
  R extends Reward | Promise<Reward>,
  L extends Limits = Limits,
> {
  /** The team's name in logs and reports. Default 'team'. */
  readonly name?: string;
  /** The schema of a task's data: it types them here and checks them before a run. */
  readonly task: StandardSchema<Data>;
  /** The agents by name, each made by `agent`. */
  readonly agents: A;
  /**
   * Limits of the loops in `play`, integers from 1 on by name, such as `{ rounds: 4 }`. `play` gets them as `limits`,
   * and a recipe may set others (`limits.rounds=2`), so that `drmas ablate` compares them. Default: none.
   */
  readonly limits?: L;
  /**
   * Checks, before a run opens its models, the services that episodes need, such as a retriever. If it rejects, the run
   * does not begin. Plans and dry runs do not call it, nor do runs whose episodes other machines play.
   */
  prepare?(context: PrepareContext<Data>): Promise<void>;
  /** Plays one episode and returns its outcome, which `reward` judges. */
  play(context: PlayContext<Data, A, NoInfer<L>>): Promise<Outcome>;
  /**
   * Computes the reward. Write it after `play` in the definition, so that TypeScript infers the type of `outcome`. A
   * team needs `reward`, `rewardGroup` or both.
   */
  reward?(context: RewardContext<Data, Outcome, NoInfer<A>>): R & OnlyAgents<Awaited<R>, keyof A>;
  /**
   * Rewards the episodes of a group together, once all of them have ended: it returns one reward for each, in their
   * order, for instance by rank. With `reward` too, agents learn from these rewards, and the success of an episode
   * comes from `reward`. If it throws, or returns another number of rewards, the episodes fail as for `reward`.
   */
  rewardGroup?(
    context: GroupRewardContext<Data, Outcome, NoInfer<A>>,
  ): readonly Reward<Extract<keyof A, string>>[] | Promise<readonly Reward<Extract<keyof A, string>>[]>;
  /**
   * Whether the episode solved its task, or how far, from 0 to 1; avg@k, pass@k and maj@k use it. Default: the named
   * part `correct` of the reward, else whether the team's reward is at least 1.
   */
  success?(context: RewardContext<Data, Outcome, NoInfer<A>>): RewardValue | Promise<RewardValue>;
  /** Measures, by name, that no agent learns from. Evaluations and steps report their means over episodes. */
  metrics?(context: RewardContext<Data, Outcome, NoInfer<A>>): Metrics | Promise<Metrics>;
}

const callable = z.custom((value) => typeof value === 'function', 'expected a function');

/** The most characters of an agent's name. */
const LONGEST_NAME = 100;

const definitionSchema = z
  .strictObject({
    name: z.string().min(1).optional(),
    task: z.unknown().superRefine((value, context) => {
      const message = schemaProblem(value);
      if (message !== undefined) context.addIssue({ code: 'custom', message });
    }),
    agents: z
      .record(
        z.string(),
        z.looseObject({ parse: z.custom((value) => typeof value === 'function', 'expected agent({ ... })') }),
      )
      .refine((agents) => Object.keys(agents).length > 0, 'expected at least one agent')
      .refine(
        (agents) => Object.keys(agents).every((name) => /^[A-Za-z][A-Za-z0-9_-]*$/.test(name)),
        'expected names that begin with a letter, followed by letters, digits, - and _',
      )
      // Folders are called after agents, and every object has fields such as `constructor`.
      .refine(
        (agents) => Object.keys(agents).every((name) => name.length <= LONGEST_NAME),
        `expected names of at most ${LONGEST_NAME} characters`,
      )
      .refine(
        (agents) => Object.keys(agents).every((name) => !(name in Object.prototype)),
        `expected other names than those that every object has: ${Object.getOwnPropertyNames(Object.prototype)
          .filter((name) => !name.startsWith('_'))
          .join(', ')}`,
      ),
    limits: z.record(z.string().regex(/^[A-Za-z]\w*$/), z.int().min(1)).optional(),
    prepare: callable.optional(),
    play: callable,
    reward: callable.optional(),
    rewardGroup: callable.optional(),
    success: callable.optional(),
    metrics: callable.optional(),
  })
  .refine(({ reward, rewardGroup }) => reward !== undefined || rewardGroup !== undefined, {
    path: ['reward'],
    message: 'expected a function here or as rewardGroup',
  });

/**
 * Declares a team: the shape of its tasks, its agents, how they play one episode, and the reward of an episode.
 *
 * @throws ArgumentError naming the field that is wrong.
 *
 * @example
 * ```ts
 * import { agent, boxed, defineTeam, gradeMath } from 'drmas';
 * import { z } from 'zod';
 *
 * const team = defineTeam({
 *   task: z.object({ question: z.string(), answer: z.string() }),
 *   agents: { solver: agent({ parse: boxed }) },
 *   play: async ({ task, agents: { solver } }) => ({ answer: (await solver(task.question)).value }),
 *   reward: ({ outcome, task }) => gradeMath(outcome.answer, task.answer),
 * });
 * ```
 */
export function defineTeam<
  Data,
  A extends Agents,
  Outcome,
  R extends Reward | Promise<Reward>,
  L extends Limits = Limits,
>(definition: TeamDefinition<Data, A, Outcome, R, L>): Team<Data, A, Outcome> {
  madeWith(definitionSchema, definition, 'defineTeam');
  // A recipe may change the values of limits, but not their names, so `play` finds each limit that it declares.
  const { name = 'team', task } = definition;
  return { ...(definition as unknown as Team<Data, A, Outcome>), name, task: asZod(task) };
}
