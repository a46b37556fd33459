/** The messages between the dashboard's page and server for a chat with an agent of a run. */

export interface TalkAgent {
  readonly name: string;
  readonly system: string | null;
  /** The sampling settings of its evaluations. */
  readonly temperature: number;
  readonly maxTokens: number;
}

export interface LoadedAgent {
  readonly run: string;
  readonly agent: string;
  readonly step: number;
  /** The bytes of the files of its weights, including the weights from before training. */
  readonly bytes: number;
}

export interface TalkFacts {
  readonly agents: readonly TalkAgent[];
  readonly checkpoints: readonly number[];
  /** The reason why no agent is available. Null if an agent is. */
  readonly problem: string | null;
  readonly loaded: LoadedAgent | null;
  /** Minutes from the last answer until the server frees the memory. */
  readonly idleMinutes: number;
}

export const talkRoles = ['system', 'user', 'assistant'] as const;
export type TalkRole = (typeof talkRoles)[number];

export interface TalkQuestion {
  readonly run: string;
  readonly agent: string;
  /** The step of the checkpoint. Null for the last one. */
  readonly step: number | null;
  /** The conversation. The server puts the system prompt in front if it is missing. */
  readonly messages: readonly { readonly role: TalkRole; readonly content: string }[];
  /** 0 takes the most probable token. Null uses the settings of evaluations. */
  readonly temperature: number | null;
  readonly maxTokens: number | null;
  /** A seed: each number gives another answer. */
  readonly seed: number;
}

/** The trained agent, and the same agent with the weights from before reinforcement. */
export type TalkSide = 'trained' | 'untrained';

export type TalkMessage =
  | { readonly type: 'loading' }
  | {
      readonly type: 'open';
      readonly loaded: LoadedAgent;
      /** A description of the untrained weights, or the reason why there are none. */
      readonly untrained: { readonly what: string; readonly there: boolean };
    }
  | { readonly type: 'text'; readonly side: TalkSide; readonly text: string }
  | {
      readonly type: 'end';
      readonly side: TalkSide;
      readonly text: string;
      readonly tokens: number;
      readonly seconds: number;
      /** True if the limit of tokens ended it. */
      readonly cut: boolean;
    }
  | { readonly type: 'failed'; readonly message: string };
