/** What the page and the server of the dashboard say to one another about talking to an agent of a run. */

/** An agent that can be talked to. */
export interface TalkAgent {
  readonly name: string;
  /** Its system prompt; null for none. */
  readonly system: string | null;
  /** How its answers were sampled in evaluations. */
  readonly temperature: number;
  readonly maxTokens: number;
}

/** The agent that is in the server's memory. */
export interface LoadedAgent {
  readonly run: string;
  readonly agent: string;
  readonly step: number;
  /** The bytes of the files that its weights were read from, those from before training among them. */
  readonly bytes: number;
}

/** Who can be talked to in a run. */
export interface TalkFacts {
  readonly agents: readonly TalkAgent[];
  /** The steps whose checkpoints are there, in order. */
  readonly checkpoints: readonly number[];
  /** Why nobody can be talked to; null where somebody can. */
  readonly problem: string | null;
  readonly loaded: LoadedAgent | null;
  /** Minutes after the last answer until the memory is freed. */
  readonly idleMinutes: number;
}

export const talkRoles = ['system', 'user', 'assistant'] as const;
export type TalkRole = (typeof talkRoles)[number];

/** A question to an agent. */
export interface TalkQuestion {
  readonly run: string;
  readonly agent: string;
  /** The step of the checkpoint; the last one where it is null. */
  readonly step: number | null;
  /** The conversation; its system prompt is put in front where it is missing. */
  readonly messages: readonly { readonly role: TalkRole; readonly content: string }[];
  /** 0 takes the most probable token; null samples as evaluations do. */
  readonly temperature: number | null;
  readonly maxTokens: number | null;
  /** Another answer for each number. */
  readonly seed: number;
}

/** The trained agent, and the same with the weights from before reinforcement. */
export type TalkSide = 'trained' | 'untrained';

/** An answer as it comes. */
export type TalkMessage =
  | { readonly type: 'loading' }
  | {
      readonly type: 'open';
      readonly loaded: LoadedAgent;
      /** What the untrained weights are, or why there are none. */
      readonly untrained: { readonly what: string; readonly there: boolean };
    }
  | { readonly type: 'text'; readonly side: TalkSide; readonly text: string }
  | {
      readonly type: 'end';
      readonly side: TalkSide;
      readonly text: string;
      readonly tokens: number;
      readonly seconds: number;
      /** True where the limit of tokens ended it. */
      readonly cut: boolean;
    }
  | { readonly type: 'failed'; readonly message: string };
