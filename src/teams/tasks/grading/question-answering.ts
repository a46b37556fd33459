/** The scores of short free-text answers that SQuAD's evaluation script defines (Rajpurkar et al. 2016). */

const PUNCTUATION = /[!-/:-@[-`{-~]/g;
const ARTICLES = /(?<![\p{L}\p{N}_])(?:a|an|the)(?![\p{L}\p{N}_])/gu;

/** The text in lower case, without ASCII punctuation and the articles a, an, the, with single spaces between words. */
export function normalizeAnswer(text: string): string {
  return text.toLowerCase().replace(PUNCTUATION, '').replace(ARTICLES, ' ').split(/\s+/).filter(Boolean).join(' ');
}

/**
 * Whether the normalised prediction equals one of the normalised references. A missing prediction is wrong.
 *
 * @example
 * ```ts
 * import { exactMatch } from 'drmas';
 *
 * exactMatch('The Eiffel Tower', ['Eiffel tower']); // true
 * ```
 */
export function exactMatch(prediction: string | null | undefined, references: string | readonly string[]): boolean {
  if (typeof prediction !== 'string') return false;
  const answer = normalizeAnswer(prediction);
  return listOf(references).some((reference) => normalizeAnswer(reference) === answer);
}

/**
 * SQuAD's F1: the harmonic mean of precision and recall over the words of the normalised texts, in [0, 1], for the best
 * reference. Two texts without words score 1, one text without words scores 0. A missing prediction scores 0.
 * HotpotQA's script differs: if one of two unequal texts is `yes`, `no` or `noanswer`, it scores 0. Its exact match is
 * `exactMatch`.
 *
 * @example
 * ```ts
 * import { tokenF1 } from 'drmas';
 *
 * tokenF1('the tower of Paris', 'tower'); // 0.5
 * ```
 */
export function tokenF1(prediction: string | null | undefined, references: string | readonly string[]): number {
  if (typeof prediction !== 'string') return 0;
  const words = wordsOf(prediction);
  return listOf(references).reduce((best, reference) => Math.max(best, overlapF1(words, wordsOf(reference))), 0);
}

const listOf = (references: string | readonly string[]): readonly string[] =>
  typeof references === 'string' ? [references] : references;

const wordsOf = (text: string): string[] => normalizeAnswer(text).split(' ').filter(Boolean);

function overlapF1(words: readonly string[], reference: readonly string[]): number {
  if (words.length === 0 || reference.length === 0) return words.length === reference.length ? 1 : 0;
  const left = new Map<string, number>();
  for (const word of reference) left.set(word, (left.get(word) ?? 0) + 1);
  let common = 0;
  for (const word of words) {
    const count = left.get(word) ?? 0;
    if (count === 0) continue;
    left.set(word, count - 1);
    common++;
  }
  if (common === 0) return 0;
  const precision = common / words.length;
  const recall = common / reference.length;
  return (2 * precision * recall) / (precision + recall);
}
