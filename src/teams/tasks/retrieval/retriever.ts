/** A piece of text that a search can find. */
export interface Passage {
  readonly title?: string | undefined;
  readonly text: string;
}

/**
 * A search for passages. The same query must always return the same passages, because episodes are compared with each
 * other and runs must be repeatable.
 */
export interface Retriever {
  /**
   * Returns at most `topk` passages, the best first; none when no passage matches.
   *
   * Rejects with the signal's reason if aborted, with another error if the search failed; both end the episode.
   */
  search(query: string, topk: number, signal: AbortSignal): Promise<readonly Passage[]>;
  /** Rejects if searches would fail. `searchTeam` calls it before a run. */
  check?(signal: AbortSignal): Promise<void>;
}

/** A query and the passages that its search returned. */
export interface Search {
  readonly query: string;
  readonly passages: readonly Passage[];
}
