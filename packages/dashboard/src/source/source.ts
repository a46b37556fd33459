import type {
  FeedMessage,
  GroupPage,
  GroupQuery,
  ShownGroup,
  ShownToken,
  TalkFacts,
  TalkMessage,
  TalkQuestion,
} from '../../../../src/runs/analysis.js';

export interface TurnPlace {
  readonly file: string;
  readonly task: string;
  readonly sample: number;
  readonly turn: number;
}

/** The source of the page's data: a server that follows the files, or the document itself. */
export interface Source {
  /** True if more data may come. */
  readonly live: boolean;
  /**
   * Sends the folder's list of runs (no names) or all data of some runs, and then all changes.
   * @param onLink Receives whether the source answers
   * @returns A function that stops the updates
   */
  follow(
    names: readonly string[],
    onMessage: (message: FeedMessage) => void,
    onLink: (answers: boolean) => void,
  ): () => void;
  /** A part of the groups of a file: those from `offset` on. */
  groups(run: string, query: GroupQuery, offset: number): Promise<GroupPage>;
  group(run: string, file: string, task: string): Promise<ShownGroup>;
  /** The parts of a run's episodes that the source lacks, in words; empty if it has all. */
  lacks(run: string): string;
  /** The tokens of a turn; absent if the source does not have them. */
  readonly tokens?: (run: string, place: TurnPlace) => Promise<readonly ShownToken[]>;
  /** Questions to agents; absent without a server that can answer them. */
  readonly talk?: Talk;
}

export interface Talk {
  /** Who can be talked to, and who is in memory. */
  about(run: string): Promise<TalkFacts>;
  /** Sends a question and receives the answers in pieces until the signal fires. @throws an error with the cause */
  ask(question: TalkQuestion, onMessage: (message: TalkMessage) => void, signal: AbortSignal): Promise<void>;
  release(): Promise<void>;
}
