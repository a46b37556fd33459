import type { Message, Tool, ToolCall } from './message.js';
import type { Task } from './task.js';

export type FinishReason = 'stop' | 'length';

/**
 * How the assistant's messages of a prompt were traced to the turns of the episode that they repeat: by the turn's id
 * or those of its calls, by equal text, or by equal calls. These were read with the ids that were sampled. Foreign ones
 * were read as text: no turn wrote them, or somebody changed what it wrote.
 */
export interface History {
  readonly exact: number;
  readonly byText: number;
  readonly byCalls: number;
  readonly foreign: number;
}

/** The share of foreign messages in histories that have messages. */
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
  /** A description of what the agent saw, where the team gave one; turns with equal observations can be compared. */
  readonly observation?: string;
  /** The environment's step that the call belongs to, where the team named one; else every call is a step. */
  readonly envStep?: number;
  readonly prompt: readonly number[]; // [P]
  /** The sampled ids, the stop token included if one was sampled. */
  readonly response: readonly number[]; // [R]
  /** log softmax(logits / temperature) of each response token over the full vocabulary. */
  readonly logprobs: readonly number[]; // [R]
  readonly temperature: number;
  readonly finishReason: FinishReason;
  /** The decoded response without its stop token, from the beginning that was written for it, where one was. */
  readonly text: string;
  /** Where the prompt's messages of assistants came from; absent where it has none. */
  readonly history?: History;
  /**
   * What the program asked for and the recipe decides, such as a temperature, by the names that its framework has for
   * them. Absent where it asked for nothing.
   */
  readonly ignored?: readonly string[];
  /** The tools that the agent was offered; absent where none were. */
  readonly tools?: readonly Tool[];
  /** The length of the response's beginning that was written for it, tokens at the prompt's end; absent without one. */
  readonly prefilled?: number;
  /** The text without calls of tools and thinking; absent where it is the whole text. */
  readonly content?: string;
  /** What the model thought before it answered. */
  readonly reasoning?: string;
  /** The calls of tools in a turn that makes some. */
  readonly toolCalls?: readonly ToolCall[];
  /** The result of the agent's parser; `undefined` when the text was invalid, or calls tools. */
  readonly value: unknown;
  readonly valid: boolean;
  /** The penalty for an invalid output (>= 0), subtracted from the turn's reward. */
  readonly penalty: number;
  /**
   * True for the turn of an agent that does not train: no policy learns from it, and no estimator's statistic counts
   * it.
   */
  readonly frozen?: true;
  /** True for the turn of an agent that the reward asked, once `play` had returned. */
  readonly judging?: true;
  /**
   * Present where an endpoint answered. It gives neither token ids nor log-probs, so `prompt`, `response` and
   * `logprobs` are empty; the counts are those of the server's tokenizer, absent where the server reports none.
   */
  readonly endpoint?: { readonly promptTokens?: number; readonly responseTokens?: number };
  /** The reward of this turn alone, besides the episode's; absent where the team gave none. */
  readonly stepReward?: number;
  /** How long what the turn set off took, in a unit of the team's; absent where the team did not say. */
  readonly duration?: number;
}

export type FailureReason = 'error' | 'overlong' | 'timeout' | 'too-many-turns' | 'reward' | 'backend';

/** The cause of an episode that did not reach its end. A failed episode is data, not a crash. */
export interface Failure {
  readonly reason: FailureReason;
  readonly message: string;
  /** Where the team's code threw, with file and line; absent where it did not. */
  readonly stack?: string;
}

/** The rewards of one episode. */
export interface Score {
  /** The team's reward. */
  readonly team: number;
  /** The rewards of agents that were rewarded individually; all other agents get the team's reward. */
  readonly agents: Readonly<Record<string, number>>;
  /**
   * The named parts of the team's reward, which is their sum, each times its weight where the recipe weighs them; empty
   * where the team names none.
   */
  readonly parts: Readonly<Record<string, number>>;
  /** The named parts of agents' rewards, which are their sums; absent where no agent's reward names any. */
  readonly agentParts?: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** How far the task was solved, from 0 to 1, where the team says so itself; `successOf` knows it of every episode. */
  readonly success?: number;
  /** The numbers that the team measures and no agent learns from; absent where it measures none. */
  readonly metrics?: Readonly<Record<string, number>>;
}

/** Something that the team's code kept with `log`: a tool's result, or a number of its own. */
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
  /** What the team kept with `log`, in order; absent where it kept nothing. */
  readonly log?: readonly LogEntry[];
  /**
   * The calls of foreign code that were rejected because the prompt did not fit the model's context or could not be
   * read, by agent; absent where none were. They are no turns.
   */
  readonly refused?: Readonly<Record<string, number>>;
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
 * The turns in an order that does not depend on the order of the calls, so that sums over them have equal bits wherever
 * the turns are equal. Turns without an id stay in their order, before all others.
 */
export function inCanonicalOrder(turns: readonly Turn[]): Turn[] {
  return turns.toSorted(({ id: a = '' }, { id: b = '' }) => (a < b ? -1 : Number(a > b)));
}

/** The number of response tokens: of the sampled ids, or as the endpoint reported it (0 where it reported none). */
export function responseTokens({ response, endpoint }: Pick<Turn, 'response' | 'endpoint'>): number {
  return endpoint === undefined ? response.length : (endpoint.responseTokens ?? 0);
}

/**
 * How far an episode solved its task, from 0 to 1: what the team's `success` says; without one the named part `correct`
 * of the reward; without that, 1 where the team's reward is at least 1. A failed episode has solved nothing.
 */
export function successOf({ score }: Pick<Episode, 'score'>): number {
  const { success, parts, team } = score;
  if (success !== undefined) return success;
  const { correct } = parts;
  return correct === undefined ? Number(team >= 1) : Math.min(1, Math.max(0, correct));
}

/** An agent's reward for the episode: its individual one where the team gave one, else the team's. */
export function agentReward({ score }: Episode, agent: string): number {
  return score.agents[agent] ?? score.team;
}

/** A turn's reward: the agent's reward for the episode plus that of this turn alone, minus the turn's penalty. */
export function turnReward(episode: Episode, turn: Turn): number {
  return agentReward(episode, turn.agent) + (turn.stepReward ?? 0) - turn.penalty;
}
