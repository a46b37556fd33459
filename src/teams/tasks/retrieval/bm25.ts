import { ArgumentError, requireKnown } from '@drmas/engine/errors';
import MiniSearch from 'minisearch';
import type { Passage, Retriever } from './retriever.js';

/** The options of `bm25Retriever`. */
export interface Bm25Options {
  /** The saturation of a word's frequency (k1 in the literature). Default 1.2. */
  readonly k?: number;
  /** The strength of the penalty on long passages, 0 to 1. Default 0.75. */
  readonly b?: number;
}

/** The most queries whose results an index keeps. */
const REMEMBERED = 20_000;

/**
 * An index for Okapi BM25 (Robertson and Zaragoza 2009) over whole words, without case and punctuation; titles are
 * searched like texts. Two things are peculiar to MiniSearch: a length counts distinct words, and a score is multiplied
 * by the number of the query's words in the passage. Equal scores keep the order of the passages. The index lives in
 * memory.
 *
 * @returns The search: at most `topk` passages for a query, the best first
 * @throws ArgumentError when `k` or `b` is out of range.
 */
export function bm25Index(
  passages: readonly Passage[],
  options: Bm25Options = {},
): (query: string, topk: number) => readonly Passage[] {
  requireKnown<Bm25Options>(options, { k: true, b: true }, 'bm25: unknown key');
  const { k = 1.2, b = 0.75 } = options;
  if (!(k >= 0 && b >= 0 && b <= 1)) throw new ArgumentError(`bm25: expected k >= 0 and b in 0..1, got ${k} and ${b}`);
  const index = new MiniSearch({
    fields: ['title', 'text'],
    // d = 0 makes MiniSearch's BM25+ plain BM25.
    searchOptions: { bm25: { k, b, d: 0 }, prefix: false, fuzzy: false, combineWith: 'OR' },
  });
  index.addAll(passages.map(({ title = '', text }, id) => ({ id, title, text })));
  const remembered = new Map<string, readonly Passage[]>();
  return (query, topk) => {
    const key = `${topk} ${query}`;
    const earlier = remembered.get(key);
    if (earlier !== undefined) return earlier;
    const ranked = index.search(query).sort((x, y) => y.score - x.score || x.id - y.id);
    const results = ranked.slice(0, topk).map(({ id }) => passages[id] as Passage);
    if (remembered.size >= REMEMBERED) remembered.clear();
    remembered.set(key, results);
    return results;
  };
}

/**
 * A retriever on a BM25 index of passages, for example from `readCorpus`. @throws ArgumentError as `bm25Index` does.
 *
 * @example
 * ```ts
 * import { bm25Retriever, readCorpus } from 'drmas/tasks';
 *
 * const retriever = bm25Retriever(await readCorpus('passages.jsonl'));
 * ```
 */
export function bm25Retriever(passages: readonly Passage[], options: Bm25Options = {}): Retriever {
  const search = bm25Index(passages, options);
  return {
    async search(query, topk, signal) {
      signal.throwIfAborted();
      return search(query, topk);
    },
  };
}
