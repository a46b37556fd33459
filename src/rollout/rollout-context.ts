import type { PlayableHandle, Sampling } from '../contract/sampling.js';
import type { TextBackend } from '../contract/text-backend.js';
import type { Turn } from '../core/episode.js';
import type { Message } from '../core/message.js';
import type { EpisodeObserver, Phase, PlayObserver } from '../core/play/play-observer.js';
import type { Task } from '../core/task.js';
import type { Scope } from '../platform/async-scopes.js';
import type { Ask, AskOptions, Team } from '../teams/team.js';
import type { AgentWays, GatewayConnection, OpenAIConnection } from '../teams/ways-in.js';

/** The settings of an agent in a run: its policy and how it samples. */
export interface AgentSettings {
  readonly policy: string;
  /** The system prompt in place of the team's; the team's where it is not given. */
  readonly system?: string;
  readonly sampling: Sampling;
  /** The sampling of evaluations; `sampling` where it is not given. */
  readonly evaluationSampling?: Sampling;
  /** The penalty that is subtracted from the reward of a turn whose output is invalid (>= 0). */
  readonly invalidPenalty: number;
  /** What every call takes off the team's reward (>= 0); nothing where it is not given. */
  readonly callCost?: number;
  /** What every token that the agent writes takes off the team's reward (>= 0); nothing where it is not given. */
  readonly tokenCost?: number;
  /** True for an agent that does not train. */
  readonly frozen?: boolean;
  /** True for an agent that the reward may ask. */
  readonly judges?: boolean;
}

/** An endpoint that answers in place of a policy. */
export interface EndpointSettings {
  readonly endpoint: TextBackend;
}

/** An episode as those see it who serve its calls. */
export interface EpisodeInPlay extends Scope {
  /** The turns so far. */
  readonly turns: readonly Turn[];
}

/**
 * The tokens of the prompt that an agent would read, at least as many where it is too long to be tokenised. Undefined
 * for an endpoint, whose tokenizer is not known. Throws a DialectError for a text that the tokenizer has not.
 */
export type MeasurePrompt = (agent: string, input: readonly Message[], options: AskOptions) => number | undefined;

/** How a program that was written for another framework asks an agent. */
export interface ForeignAskOptions extends AskOptions {
  /**
   * A prompt that does not fit the model's context, or has a text that its tokenizer has not, rejects this call with a
   * DialectError; else it fails the episode. The answer is cut to what the context has left.
   */
  readonly foreign?: true;
  /** What it asked for and the recipe decides, by the names that its framework has for them. */
  readonly ignored?: readonly string[];
}

/** The agents as `play` gets them. */
export interface PlayWays {
  readonly agents: Readonly<Record<string, Ask & AgentWays>>;
  readonly openai: OpenAIConnection;
  readonly gateway: GatewayConnection;
}

/** The settings that stay the same while a run plays episodes. */
export interface RolloutContext {
  /** The settings of every agent of the team, by its name. */
  readonly agents: Readonly<Record<string, AgentSettings>>;
  /** The policies and endpoints, by the names that the agents' settings use. */
  readonly policies: Readonly<Record<string, PlayableHandle | EndpointSettings>>;
  /** The seed of sampling. */
  readonly seed: number;
  /** What the named parts of the team's reward count; once, where it is not given. */
  readonly partWeights?: Readonly<Record<string, number>> | undefined;
  /** The most calls of agents in one episode. */
  readonly maxTurns: number;
  /** The longest time for one episode, its reward included. */
  readonly timeoutMs: number;
  /** The longest time for the team's code to return once its episode has failed; a second where it is not given. */
  readonly cleanupMs?: number;
  /** The most episodes at once; without it they are not limited. */
  readonly concurrency?: number;
  /** The most characters of an outcome, and of a value that a team logs, as JSON; without it they are not limited. */
  readonly maxOutcomeBytes?: number;
  /**
   * Runs a team's code in the scope of its episode, so that errors which nothing awaits find it. Without it such an
   * error is the process's, as in every program.
   */
  readonly inScope?: <T>(scope: Scope, run: () => T) => T;
  /** Gives `play` the agents with the ways to them for code that was written for other frameworks. */
  readonly waysIn: (episode: EpisodeInPlay, agents: Readonly<Record<string, Ask>>, measure: MeasurePrompt) => PlayWays;
  /** Begins to watch for code of a team that does not return, and gives the end of the watch. */
  readonly watch?: () => () => void;
  /** Receives what a person should know about a team. */
  readonly warn?: (message: string) => void;
  /** Is told what is being played. */
  readonly observer?: PlayObserver | undefined;
}

/** Published versions of policies, by their names. */
export type Versions = Readonly<Record<string, number>>;

/** System prompts of agents, by their names. */
export type SystemPrompts = Readonly<Record<string, string>>;

/** An episode that is played again from one of its turns on, with everything before that turn as it was. */
export interface Branch {
  /** The number of this branch of the episode, from 0: each has random numbers of its own. */
  readonly number: number;
  /** The turns before it, which answer as they did. */
  readonly fixed: readonly Turn[];
}

/** One episode to play. */
export interface EpisodeRequest<Data = unknown> {
  readonly team: Team<Data>;
  readonly task: Task<Data>;
  /** The position among the G episodes of the task. */
  readonly sample: number;
  readonly phase: Phase;
  readonly step: number;
  /** Sampling settings that override those of the agents. */
  readonly sampling?: Partial<Sampling> | undefined;
  /** The published versions that play, by policy; the last one of a policy that is not named. */
  readonly versions?: Versions | undefined;
  /** The system prompts of agents that are to have another one than the recipe gives them. */
  readonly prompts?: SystemPrompts | undefined;
  /** What is played again, where this is another end of an episode of the same task, sample, phase and step. */
  readonly branch?: Branch | undefined;
  /** The signal that interrupts the run. */
  readonly signal?: AbortSignal | undefined;
  /** Is told what happens in the episode. */
  readonly observer?: EpisodeObserver | undefined;
}
