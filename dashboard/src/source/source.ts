import type { FeedMessage } from '../../../src/report/analysis/feed.js';
import type { GroupPage, GroupQuery, ShownGroup, ShownToken } from '../../../src/report/analysis/shown-episode.js';

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
}
