import type { PlayableHandle, Sampling, TextBackend } from '@drmas/engine/contract';
import type { EpisodeListener, Phase, RunListener } from '@drmas/engine/host';
import type { Message, Task, Turn } from '@drmas/engine/nouns';
import type { Scope } from '@drmas/engine/platform';
import type { AgentWays, EpisodeWays, GatewayConnection } from '../team/agent-adapters.js';
import type { Ask, AskOptions, RankedEpisode, Team } from '../team/team.js';

/** The most tokens of an agent's prompts, and where a longer one loses tokens. */
export interface PromptLimit {
  /** At least 1. */
  readonly tokens: number;
  /** `left` keeps the prompt's end. `middle` keeps a half at each end, and an odd token at the end. */
  readonly cut: 'left' | 'middle';
}

export interface AgentSettings {
  readonly policy: string;
  /** The system prompt; by default the team's. */
  readonly system?: string;
  readonly sampling: Sampling;
  /** The sampling of evaluations; default `sampling`. */
  readonly evaluationSampling?: Sampling;
  /** Longer prompts are cut; default: a prompt may fill the context. */
  readonly promptLimit?: PromptLimit | undefined;
  /** The penalty that is subtracted from the reward of a turn whose output is invalid (>= 0). */
  readonly invalidPenalty: number;
  /** Is subtracted from the team's reward for every call (>= 0); default 0. */
  readonly callCost?: number;
  /** Is subtracted from the team's reward for every token that the agent writes (>= 0); default 0. */
  readonly tokenCost?: number;
  readonly frozen?: boolean;
  /** True for an agent that the reward may ask. */
  readonly judges?: boolean;
}

export interface EndpointSettings {
  readonly endpoint: TextBackend;
}

export interface EpisodeInPlay extends Scope {
  readonly turns: readonly Turn[];
  /** The calls of `play` so far, also those that were rejected or given up and are no turns. */
  readonly calls: number;
  /** Remembers the error that a call got in place of an answer, in case the program's framework loses it. */
  noteRefusal(error: unknown): void;
}

/** Counts by the tokenizers of the agents. Undefined for an endpoint, whose tokenizer is unknown. */
export interface TokenCounts {
  /**
   * The number of tokens of a prompt; a lower bound if the prompt is too long to be tokenised. Throws a DialectError
   * for a text that the tokenizer cannot represent.
   */
  ofPrompt(agent: string, input: readonly Message[], options: AskOptions): number | undefined;
  /** The number of tokens of a turn's response up to the end of its thinking. Undefined without thinking. */
  ofThinking(turn: Turn): number | undefined;
}

/** The options of a call from a program that was written for another framework. */
export interface ForeignAskOptions extends AskOptions {
  /**
   * With `foreign`, a prompt that does not fit the model's context, or that its tokenizer cannot represent, rejects
   * only this call, with a DialectError; without it the episode fails. The answer is limited to the room in the
   * context.
   */
  readonly foreign?: true;
  /** Settings in the request that the recipe decides, by the framework's names for them. */
  readonly ignored?: readonly string[];
  /**
   * With `probe`, the call is no turn and counts as none, and an error rejects this call alone, with a DialectError.
   * The function gets what would be the turn.
   */
  readonly probe?: (turn: Turn) => void;
}

export interface AdaptedAgents extends EpisodeWays {
  readonly agents: Readonly<Record<string, Ask & AgentWays>>;
  readonly gateway: GatewayConnection;
}

/** The settings of a run's rollouts. They can be copied to a thread or to a worker. */
export interface RolloutSettings {
  readonly agents: Readonly<Record<string, AgentSettings>>;
  readonly seed: number;
  /** The weights of the named parts of the team's reward; 1 for a part without a weight. */
  readonly partWeights?: Readonly<Record<string, number>> | undefined;
  /** The most calls of agents in one episode. */
  readonly maxTurns: number;
  /** The longest time for one episode, its reward included. */
  readonly timeoutMs: number;
  /** How often `reward`, `success` and `metrics` are called again if one of them throws; default 0. */
  readonly rewardRetries?: number;
  /** The longest time for the team's code to return once its episode has failed; default one second. */
  readonly cleanupMs?: number;
  /** The most episodes at once; default no limit. */
  readonly concurrency?: number;
  /** The most characters of an outcome, and of a value that a team logs, as JSON; default no limit. */
  readonly maxOutcomeBytes?: number;
}

/** Everything that an episode needs while it is played. It stays the same for a whole run. */
export interface RolloutContext extends RolloutSettings {
  /** The policies and endpoints, by the names that the agents' settings use. */
  readonly policies: Readonly<Record<string, PlayableHandle | EndpointSettings>>;
  /**
   * Runs a team's code in the scope of its episode, so that an error which no code awaits fails that episode. Without
   * it such an error ends the process.
   */
  readonly inScope?: <T>(scope: Scope, run: () => T) => T;
  /** Adds to the agents of `play` the interfaces that code of other frameworks calls. */
  readonly adaptAgents: (
    episode: EpisodeInPlay,
    agents: Readonly<Record<string, Ask>>,
    counts: TokenCounts,
  ) => AdaptedAgents;
  /** Begins to watch for code of a team that does not return. The result ends the watch. */
  readonly watch?: () => () => void;
  readonly warn?: (message: string) => void;
  readonly listener?: RunListener | undefined;
}

export type Versions = Readonly<Record<string, number>>;

/** An episode that is played again from one of its turns on, with everything before that turn as it was. */
export interface Replay {
  /** The number of this replay of the episode, from 0: each has random numbers of its own. */
  readonly number: number;
  /** The turns before it, which answer as they did. */
  readonly fixed: readonly Turn[];
}

export interface EpisodeRequest<Data = unknown> {
  readonly team: Team<Data>;
  readonly task: Task<Data>;
  /** The position among the G episodes of the task. */
  readonly sample: number;
  readonly phase: Phase;
  readonly step: number;
  /** Sampling settings that override the agents' settings. */
  readonly sampling?: Partial<Sampling> | undefined;
  /** The published versions that play, by policy; the last one of a policy that is not named. */
  readonly versions?: Versions | undefined;
  /** Plays an episode of the same task, sample, phase and step again, to another end. */
  readonly replay?: Replay | undefined;
  /**
   * Episodes of the task that have ended. Instead of playing, the team's `rewardGroup` gets them, and the outcome is
   * its list of rewards.
   */
  readonly judged?: readonly RankedEpisode<Data, unknown>[] | undefined;
  /** Settles when agents may answer. The episode begins before, up to its first calls; its time counts from then. */
  readonly ready?: Promise<unknown> | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly listener?: EpisodeListener | undefined;
}
