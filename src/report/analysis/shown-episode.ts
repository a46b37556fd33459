/** Episodes as a page shows them. */

/** The characters after which a text is cut; the episode file holds all of it. */
export const LONGEST_TEXT = 6000;

/** A turn as a page shows it. */
export interface ShownTurn {
  readonly agent: string;
  /** What it read: roles with texts. */
  readonly messages: readonly (readonly [role: string, text: string])[];
  readonly text: string;
  /** The earlier turns of the episode whose words it read, by their positions. */
  readonly reads: readonly number[];
  readonly envStep: number | null;
  readonly tokens: number;
  readonly valid: boolean;
  /** True where the limit of tokens ended it. */
  readonly cut: boolean;
  readonly frozen: boolean;
  readonly penalty: number;
  /** The reward that the team gave this turn besides the episode's. */
  readonly stepReward: number;
  readonly reward: number;
  /** Mean over the tokens where the estimator gives one a token; null in evaluations. */
  readonly advantage: number | null;
}

export interface ShownEpisode {
  readonly sample: number;
  readonly reward: number;
  /** The rewards of agents that were rewarded individually, and the named parts of rewards. */
  readonly agents: Readonly<Record<string, number>>;
  readonly parts: Readonly<Record<string, number>>;
  readonly metrics: Readonly<Record<string, number>>;
  /** What `play` returned, as JSON. */
  readonly outcome: string;
  /** What `play` logged: names with values as JSON. */
  readonly log: readonly (readonly [name: string, value: string])[];
  readonly failure: string | null;
  readonly turns: readonly ShownTurn[];
}

/** The episodes of one task in one file. */
export interface ShownGroup {
  readonly task: string;
  /** The task in words. */
  readonly data: string;
  readonly episodes: readonly ShownEpisode[];
}

/** A token of a response. */
export interface ShownToken {
  readonly text: string;
  readonly logprob: number | null;
  readonly advantage: number | null;
  /** The importance ratio in the last update that used it; null where none did, or nobody kept it. */
  readonly ratio: number | null;
  /** Whether the clipped side of the objective counted there. */
  readonly clipped: boolean;
}

/** An episode in a list of groups. */
export interface EpisodeDot {
  readonly sample: number;
  readonly reward: number;
  readonly failed: boolean;
  readonly invalid: boolean;
  /** Whether it is one of those that were asked for. */
  readonly matches: boolean;
}

/** A group in a list: its task and its episodes. */
export interface GroupRow {
  readonly task: string;
  readonly episodes: readonly EpisodeDot[];
}

/** The kinds of groups that one may ask for. */
export const groupKinds = ['all', 'mixed', 'all equal', 'with invalid output', 'with failures'] as const;
export type GroupKind = (typeof groupKinds)[number];

/** Which groups of a file are asked for. */
export interface GroupQuery {
  readonly file: string;
  readonly kind: GroupKind;
  /** An agent that must have been called; empty for any. */
  readonly agent: string;
  /** Words that a text of the episode must hold, of the agent where one is named; empty for any. */
  readonly text: string;
  /** Bounds of the episode's reward. */
  readonly low: number | null;
  readonly high: number | null;
}

/** A part of the list of groups that were asked for. */
export interface GroupPage {
  /** Groups and episodes in the file, and those that match. */
  readonly groups: number;
  readonly episodes: number;
  readonly matchingGroups: number;
  readonly matchingEpisodes: number;
  readonly agents: readonly string[];
  readonly offset: number;
  readonly rows: readonly GroupRow[];
}
