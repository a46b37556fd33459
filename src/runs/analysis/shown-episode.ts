/** Episodes in the form of a page. */
import { isObject } from '@drmas/engine/errors';

/** The number of characters of a text that a page shows. The episode file contains all of it. */
export const LONGEST_TEXT = 6000;

/** The number of turns of an episode that a page shows and searches. The episode file contains all of them. */
export const MOST_TURNS = 1000;

/** A task in words: its question with its answer, or its other fields in one line; undefined if it has no text. */
export function taskWords(data: unknown): string | undefined {
  if (typeof data === 'string') return data;
  if (!isObject(data)) return undefined;
  const { question, answer } = data;
  if (typeof question === 'string') return `${question}${typeof answer === 'string' ? `  (answer: ${answer})` : ''}`;
  const fields = Object.entries(data).flatMap(([name, value]) =>
    ['string', 'number', 'boolean'].includes(typeof value) ? [`${name}: ${value}`] : [],
  );
  return fields.length === 0 ? undefined : fields.join(', ');
}

const LONGEST_TITLE = 120;

/** The words of a task that name it in a list; its id if it has none. */
export function taskTitle({ id, data }: { readonly id: string; readonly data?: unknown }): string {
  const question = isObject(data) && typeof data.question === 'string' ? data.question : taskWords(data);
  return (question?.trim() || id).slice(0, LONGEST_TITLE);
}

export interface ShownTurn {
  readonly agent: string;
  readonly messages: readonly (readonly [role: string, text: string])[];
  readonly text: string;
  /** The positions of the earlier turns in the episode whose texts the prompt contains. */
  readonly reads: readonly number[];
  readonly envStep: number | null;
  /** The tokens of its response; 0 if its endpoint reports none. */
  readonly tokens: number;
  readonly valid: boolean;
  /** True if the limit of tokens ended it. */
  readonly cut: boolean;
  readonly frozen: boolean;
  readonly penalty: number;
  /** The turn's own reward, in addition to the episode's. */
  readonly stepReward: number;
  readonly reward: number;
  /** The mean over the tokens if the estimator gives one advantage a token. Null in evaluations. */
  readonly advantage: number | null;
}

export interface ShownEpisode {
  readonly sample: number;
  readonly reward: number;
  /** The rewards of agents with an individual reward, and the named parts of rewards. */
  readonly agents: Readonly<Record<string, number>>;
  readonly parts: Readonly<Record<string, number>>;
  readonly metrics: Readonly<Record<string, number>>;
  /** The result of `play`, as JSON. */
  readonly outcome: string;
  /** The values that `play` logged: names with JSON. */
  readonly log: readonly (readonly [name: string, value: string])[];
  readonly failure: string | null;
  /** The first turns; if there are more, the log says how many. */
  readonly turns: readonly ShownTurn[];
}

export interface ShownGroup {
  /** The task's id. */
  readonly task: string;
  readonly title: string;
  readonly data: string;
  readonly episodes: readonly ShownEpisode[];
}

export interface ShownToken {
  readonly text: string;
  readonly logprob: number | null;
  readonly advantage: number | null;
  /**
   * The importance ratio in the last update that used the token. Null if no update used it, or if it was not stored.
   */
  readonly ratio: number | null;
  /** Whether the loss used the clipped term for the token. */
  readonly clipped: boolean;
}

export interface EpisodeDot {
  readonly sample: number;
  readonly reward: number;
  readonly failed: boolean;
  readonly invalid: boolean;
  readonly matches: boolean;
}

export interface GroupRow {
  /** The task's id. */
  readonly task: string;
  readonly title: string;
  readonly episodes: readonly EpisodeDot[];
}

export const groupKinds = ['all', 'mixed', 'all equal', 'with invalid output', 'with failures'] as const;
export type ShownGroupKind = (typeof groupKinds)[number];

export interface GroupQuery {
  readonly file: string;
  readonly kind: ShownGroupKind;
  /** An agent that must have been called. Empty for any. */
  readonly agent: string;
  /** Words in a text of the episode; only the agent's texts if an agent is named. Empty for any. */
  readonly text: string;
  readonly low: number | null;
  readonly high: number | null;
}

export interface GroupPage {
  /** The numbers of groups and episodes in the file, and of those that match. */
  readonly groups: number;
  readonly episodes: number;
  readonly matchingGroups: number;
  readonly matchingEpisodes: number;
  readonly agents: readonly string[];
  readonly offset: number;
  readonly rows: readonly GroupRow[];
}
