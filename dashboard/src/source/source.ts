import type { FeedMessage } from '../../../src/report/analysis/feed.js';
import type { GroupPage, GroupQuery, ShownGroup, ShownToken } from '../../../src/report/analysis/shown-episode.js';
import type { TalkFacts, TalkMessage, TalkQuestion } from '../../../src/report/analysis/talk-protocol.js';

/** The place of a turn. */
export interface TurnPlace {
  readonly file: string;
  readonly task: string;
  readonly sample: number;
  readonly turn: number;
}

/** Where the page has its data from: a server that follows the files, or the document itself. */
export interface Source {
  /** True where more may come. */
  readonly live: boolean;
  /**
   * Tells what the folder holds (no names) or all about some runs, and what is new.
   * @param onLink Hears whether the source answers
   * @returns A function that ends it
   */
  follow(
    names: readonly string[],
    onMessage: (message: FeedMessage) => void,
    onLink: (answers: boolean) => void,
  ): () => void;
  /** A part of the groups of a file: those from `offset` on. */
  groups(run: string, query: GroupQuery, offset: number): Promise<GroupPage>;
  group(run: string, file: string, task: string): Promise<ShownGroup>;
  /** What the source lacks of a run's episodes, in words; empty where it has all of them. */
  lacks(run: string): string;
  /** The tokens of a turn; absent where the source does not hold them. */
  readonly tokens?: (run: string, place: TurnPlace) => Promise<readonly ShownToken[]>;
  /** Talks to agents; absent where no server can. */
  readonly talk?: Talk;
}

/** Talking to the agents of a run. */
export interface Talk {
  /** Who can be talked to, and who is in memory. */
  about(run: string): Promise<TalkFacts>;
  /** Asks, and tells the answers as they come, until the signal fires. @throws an error with what is wrong */
  ask(question: TalkQuestion, onMessage: (message: TalkMessage) => void, signal: AbortSignal): Promise<void>;
  /** Frees the server's memory. */
  release(): Promise<void>;
}
