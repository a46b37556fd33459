import { type Message, messageText, type Tool, type ToolCall } from './message.js';
import type { Task } from './task.js';

/** `stop`: the model ended its response. `length`: the response reached `maxTokens` or the end of the context. */
export type FinishReason = 'stop' | 'length';

/**
 * Counts of a prompt's assistant messages, by how each was matched to the turn that wrote it: by the turn's id or the
 * ids of its tool calls (`exact`), by equal text, or by equal tool calls. Matched messages keep the token ids that were
 * sampled. `foreign` messages match no turn: no turn wrote them, or their text was changed. They are tokenised as text.
 */
export interface History {
  readonly exact: number;
  readonly byText: number;
  readonly byCalls: number;
  readonly foreign: number;
}

/** The share of foreign messages, from 0 to 1, over all messages of the histories. */
export function shareOfForeign(histories: readonly History[]): number {
  const sum = (of: (history: History) => number) => histories.reduce((total, history) => total + of(history), 0);
  return (
    sum(({ foreign }) => foreign) / sum(({ exact, byText, byCalls, foreign }) => exact + byText + byCalls + foreign)
  );
}

/** One call of one agent, with P prompt tokens and R response tokens: exactly the ids that were fed and sampled. */
export interface Turn {
  /**
   * The name of the turn in the run: the key of its random numbers, 16 hexadecimal digits. It follows from what the
   * agent read and not from when it was called. Absent in logs of earlier versions.
   */
  readonly id?: string;
  readonly agent: string;
  readonly policy: string;
  /** The version of the policy that wrote the response. */
  readonly policyVersion: number;
  /** The position among the episode's calls, in the order in which the team made them. */
  readonly turn: number;
  /** The position among this agent's calls in the episode. */
  readonly call: number;
  readonly messages: readonly Message[];
  /** The team's description of the state that the agent saw. Turns with equal observations can be compared. */
  readonly observation?: string;
  /** The environment's step that the call belongs to. Without it each call is a step of its own. */
  readonly envStep?: number;
  readonly prompt: readonly number[]; // [P]
  /** The sampled ids, the stop token included if one was sampled. */
  readonly response: readonly number[]; // [R]
  /** log softmax(logits / temperature) of each response token over the full vocabulary. */
  readonly logprobs: readonly number[]; // [R]
  readonly temperature: number;
  readonly finishReason: FinishReason;
  /** The decoded response without its stop token. It begins with the prefill if the prompt had one. */
  readonly text: string;
  /** The origin of the prompt's assistant messages. Absent if the prompt has none. */
  readonly history?: History;
  /**
   * Settings that the calling program asked for and the recipe overrides, such as a temperature, by the names that the
   * program's framework uses. Absent if the program asked for none.
   */
  readonly ignored?: readonly string[];
  /** The tools that the agent could call. Absent if it had none. */
  readonly tools?: readonly Tool[];
  /** The number of tokens that the prompt lost because it was longer than the agent's `promptLimit`. Else absent. */
  readonly cut?: number;
  /** The number of prefilled tokens: the prompt's end, with which the text begins. Absent without a prefill. */
  readonly prefilled?: number;
  /** The text without tool calls and reasoning. Absent if the text has neither. */
  readonly content?: string;
  /** The model's reasoning, which comes before its reply. */
  readonly reasoning?: string;
  /** The tool calls of the turn. */
  readonly toolCalls?: readonly ToolCall[];
  /** The result of the agent's parser. Undefined if the text was invalid or calls tools. */
  readonly value: unknown;
  readonly valid: boolean;
  /** The penalty for an invalid output (>= 0), subtracted from the turn's reward. */
  readonly penalty: number;
  /** True for a turn of a frozen agent. No policy learns from it, and no estimator counts it in its statistics. */
  readonly frozen?: true;
  /** True for a turn of an agent that the reward function called after `play` had returned. */
  readonly judging?: true;
  /**
   * Present if an endpoint wrote the response. An endpoint gives neither token ids nor log-probs, so `prompt`,
   * `response` and `logprobs` are empty. The server's tokenizer made the counts; they are absent if it reports none.
   * `providerData` are the server's own, which it wants back with its tool calls.
   */
  readonly endpoint?: {
    readonly promptTokens?: number;
    readonly responseTokens?: number;
    readonly providerData?: Readonly<Record<string, unknown>>;
  };
  /** The turn's own reward, which is added to the episode's reward. Absent if the team gave none. */
  readonly stepReward?: number;
  /** How long the turn's action took, in the team's unit. Absent if the team gave no duration. */
  readonly duration?: number;
}

/** Why an episode failed; docs/failures.md explains each reason. */
export type FailureReason =
  | 'error'
  | 'invalid-output'
  | 'overlong'
  | 'timeout'
  | 'too-many-turns'
  | 'reward'
  | 'backend';

/** The cause of an episode that did not reach its end. A failed episode is data, not a crash. */
export interface Failure {
  readonly reason: FailureReason;
  readonly message: string;
  /** The agent whose call failed. Absent if no single agent is the cause. */
  readonly agent?: string;
  /** True if `play` had returned, so that only the score is missing. Absent for the reason `reward`. */
  readonly scoring?: true;
  /** The stack of the error, with file and line, if the team's code threw it. */
  readonly stack?: string;
}

/** The rewards of one episode. */
export interface Score {
  /** The team's reward. */
  readonly team: number;
  /** The rewards of agents that were rewarded individually; all other agents get the team's reward. */
  readonly agents: Readonly<Record<string, number>>;
  /**
   * The named parts of the team's reward. The reward is their sum, each part times its weight in the recipe. Empty if
   * the team names no parts.
   */
  readonly parts: Readonly<Record<string, number>>;
  /** The named parts of each agent's own reward. Absent if no agent's reward has named parts. */
  readonly agentParts?: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** How far the task was solved, from 0 to 1, if the team's code says so. `successOf` has a value for all episodes. */
  readonly success?: number;
  /** The team's metrics: numbers that no agent learns from. Absent if the team has none. */
  readonly metrics?: Readonly<Record<string, number>>;
}

/** A value that the team's code recorded with `log`: a tool's result or a number, for example. */
export interface LogEntry {
  readonly name: string;
  readonly value: unknown;
}

/** One run of the team on one task. */
export interface Episode<Data = unknown> {
  readonly task: Task<Data>;
  /** The position among the G episodes of the task's group. */
  readonly sample: number;
  readonly turns: readonly Turn[];
  /** The value that `play` returned; `undefined` when the episode failed. */
  readonly outcome: unknown;
  readonly score: Score;
  /** The values that the team's code recorded with `log`, in order. Absent if there are none. */
  readonly log?: readonly LogEntry[];
  /**
   * The number of rejected calls by agent: the prompt did not fit the model's context or could not be read. Rejected
   * calls are no turns. Absent if there were none.
   */
  readonly refused?: Readonly<Record<string, number>>;
  /**
   * The number of calls by agent that `play` did not wait for before it returned. Such calls are no turns. Absent if
   * there were none.
   */
  readonly unanswered?: Readonly<Record<string, number>>;
  readonly failure?: Failure;
}

/** The G episodes of one task. */
export interface EpisodeGroup<Data = unknown> {
  readonly task: Task<Data>;
  readonly episodes: readonly Episode<Data>[];
}

/** The turns of agents that train. */
export function trainedTurns({ turns }: Pick<Episode, 'turns'>): Turn[] {
  return turns.filter(({ frozen }) => frozen !== true);
}

/**
 * The turns sorted by id. The order does not depend on when the calls were made, so sums over equal turns have equal
 * bits. Turns without an id come first, in their order.
 */
export function inCanonicalOrder(turns: readonly Turn[]): Turn[] {
  return turns.toSorted(({ id: a = '' }, { id: b = '' }) => (a < b ? -1 : Number(a > b)));
}

/** A turn in words: the text that the agent wrote; if it called tools, its reasoning, its content and the calls. */
export function turnText({
  text,
  content = text,
  reasoning = '',
  toolCalls,
}: Pick<Turn, 'text' | 'content' | 'reasoning' | 'toolCalls'>): string {
  if (toolCalls === undefined) return text;
  return [reasoning, messageText({ content, toolCalls })].filter((part) => part !== '').join('\n');
}

/** The number of prompt tokens: the ids, or the endpoint's count, which is undefined if it reports none. */
export function promptTokens({ prompt, endpoint }: Pick<Turn, 'prompt' | 'endpoint'>): number | undefined {
  return endpoint === undefined ? prompt.length : endpoint.promptTokens;
}

/** The number of response tokens: the sampled ids, or the endpoint's count, which is undefined if it reports none. */
export function responseTokens({ response, endpoint }: Pick<Turn, 'response' | 'endpoint'>): number | undefined {
  return endpoint === undefined ? response.length : endpoint.responseTokens;
}

/**
 * How far an episode solved its task, from 0 to 1: the team's `success`; without one, the reward's part `correct`;
 * without that, 1 if the team's reward is at least 1. A failed episode scores 0.
 */
export function successOf({ score }: Pick<Episode, 'score'>): number {
  const { success, parts, team } = score;
  if (success !== undefined) return success;
  const { correct } = parts;
  return correct === undefined ? Number(team >= 1) : Math.min(1, Math.max(0, correct));
}

/** The reasons of failures that the agents' texts cause: an output that does not fit, or no end of the episode. */
const OF_AGENTS: ReadonlySet<string> = new Set<FailureReason>(['invalid-output', 'overlong', 'too-many-turns']);

/** Whether the agents' texts caused a failure, and neither the team's code, its reward nor a service did. */
export function isOfAgents({ reason, scoring }: Failure): boolean {
  return OF_AGENTS.has(reason) && scoring !== true;
}

/**
 * Whether policies may learn from an episode: it did not fail, or its agents caused the failure and one that trains
 * wrote a turn. A failed episode has the reward 0 and keeps the penalties of its turns.
 */
export function isLesson(episode: Pick<Episode, 'failure' | 'turns'>): boolean {
  const { failure } = episode;
  return failure === undefined || (isOfAgents(failure) && trainedTurns(episode).length > 0);
}

/** Whether only the score of an episode is missing: `play` returned an outcome, and the reward failed. */
export function isUnscored({ failure }: Pick<Episode, 'failure'>): boolean {
  return failure !== undefined && (failure.reason === 'reward' || failure.scoring === true);
}

/** The groups without episodes that have no score. A group may have no episode left. */
export function withoutUnscored(played: readonly EpisodeGroup[]): readonly EpisodeGroup[] {
  return played.map(({ task, episodes }) => ({ task, episodes: episodes.filter((episode) => !isUnscored(episode)) }));
}

/** The groups that have an episode with a score, without their other episodes. */
export const scoredGroups = (played: readonly EpisodeGroup[]): readonly EpisodeGroup[] =>
  withoutUnscored(played).filter(({ episodes }) => episodes.length > 0);

/** An agent's reward for the episode: its own if the team's code gave one, else the team's. */
export function agentReward({ score }: Episode, agent: string): number {
  return score.agents[agent] ?? score.team;
}

/** A turn's reward: the agent's reward for the episode, plus the turn's own reward, minus the turn's penalty. */
export function turnReward(episode: Episode, turn: Turn): number {
  return agentReward(episode, turn.agent) + (turn.stepReward ?? 0) - turn.penalty;
}
