import type { FeedMessage } from '../../../src/report/analysis/feed.js';

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
}
