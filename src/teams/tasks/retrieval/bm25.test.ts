import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bm25Index, bm25Retriever } from './bm25.js';

const passages = [
  { title: 'Badan', text: 'Badan lives in Kodon .' },
  { title: 'Kodon', text: 'Kodon lies in Mirun .' },
  { title: 'Badan', text: 'Badan was raised by Lirin .' },
  { text: 'Lirin lives in Kodon .' },
];
const texts = (query: string, topk = 9) => bm25Index(passages)(query, topk).map(({ text }) => text);
const { signal } = new AbortController();

describe('BM25', () => {
  it('ranks passages by the words of the query, and keeps the order of passages with equal scores', () => {
    expect(texts('Badan raised', 1)).toEqual(['Badan was raised by Lirin .']);
    expect(texts('BADAN, mother?')).toEqual(['Badan lives in Kodon .', 'Badan was raised by Lirin .']);
    expect(texts('lives Lirin', 2)).toEqual(['Lirin lives in Kodon .', 'Badan lives in Kodon .']);
  });

  it('matches only whole words, and finds nothing for words that no passage has', () => {
    for (const query of ['', '?', 'Bada', 'mother', 'liveses']) expect(texts(query), query).toEqual([]);
  });

  it('scores by the formula', () => {
    // One field, one word: idf * tf (k + 1) / (tf + k (1 - b + b length / mean)); length counts distinct words.
    const word = fc.constantFrom('a', 'b', 'c', 'd');
    const corpus = fc.array(fc.array(word, { minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 8 });
    const eighths = (most: number) => fc.integer({ min: 0, max: 8 * most }).map((n) => n / 8);
    fc.assert(
      fc.property(corpus, word, eighths(3), eighths(1), (documents, query, k, b) => {
        const lengthOf = (words: string[]) => new Set(words).size;
        const average = documents.reduce((sum, words) => sum + lengthOf(words), 0) / documents.length;
        const scoreOf = (words: string[]) => {
          const tf = words.filter((each) => each === query).length;
          return tf === 0 ? 0 : (tf * (k + 1)) / (tf + k * (1 - b + (b * lengthOf(words)) / average));
        };
        const best = documents
          .map(scoreOf)
          .filter((score) => score > 0)
          .sort((x, y) => y - x);
        const results = bm25Index(
          documents.map((words) => ({ text: words.join(' ') })),
          { k, b },
        )(query, 99);
        expect(results.length).toBe(best.length);
        for (const [i, { text }] of results.entries())
          expect(scoreOf(text.split(' '))).toBeCloseTo(best[i] ?? Number.NaN, 9);
      }),
      { numRuns: 50 },
    );
  });

  it('is a retriever that stops when its signal fires, and refuses invalid settings', async () => {
    const retriever = bm25Retriever(passages);
    expect(await retriever.search('Badan raised', 1, signal)).toEqual([passages[2]]);
    await expect(retriever.search('Badan', 1, AbortSignal.abort(new Error('over')))).rejects.toThrow('over');
    expect(() => bm25Retriever(passages, { b: 2 })).toThrow('expected k >= 0 and b in 0..1');
    expect(() => bm25Retriever(passages, { k: Number.NaN })).toThrow('expected k >= 0');
  });
});
