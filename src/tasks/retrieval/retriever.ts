/** A piece of text that a search can find. */
export interface Passage {
  readonly title?: string | undefined;
  readonly text: string;
}

/**
 * Finds passages for a query. The same query must always find the same passages: episodes are compared with each other, and
 * a run is to be repeatable.
 */
export interface Retriever {
  /**
   * At most `topk` passages, the best first; none when nothing fits.
   *
   * Rejects with the signal's reason when aborted, with an error of its own when the search failed; either ends the episode.
   */
  search(query: string, topk: number, signal: AbortSignal): Promise<readonly Passage[]>;
}

/** A query that was asked and what it found. */
export interface Search {
  readonly query: string;
  readonly passages: readonly Passage[];
}
