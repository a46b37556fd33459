import { describe, expect, it } from 'vitest';
import { golden } from '../../../../test/goldens.js';
import { exactMatch, normalizeAnswer, tokenF1 } from './question-answering.js';

describe('question answering', () => {
  it('normalises case, punctuation, articles and spaces', () => {
    expect(normalizeAnswer('  The  Lord of a Ring! ')).toBe('lord of ring');
    expect(normalizeAnswer('Theatre, anatomy')).toBe('theatre anatomy');
  });

  it('takes the best of several references', () => {
    expect(exactMatch('the Paris', ['London', 'Paris'])).toBe(true);
    expect(exactMatch('Paris', 'London')).toBe(false);
    expect(tokenF1('Paris France', ['London', 'Paris'])).toBeCloseTo(2 / 3, 12);
    expect(tokenF1('Paris', [])).toBe(0);
  });

  it('counts repeated words as often as both have them', () => {
    expect(tokenF1('a cat cat dog', 'cat dog dog')).toBeCloseTo(2 / 3, 12);
  });

  it('scores a missing prediction as wrong and two empty answers as equal', () => {
    expect([exactMatch(null, 'x'), exactMatch(undefined, 'x'), tokenF1(undefined, 'x')]).toEqual([false, false, 0]);
    expect(tokenF1('the', 'a')).toBe(1);
    expect(tokenF1('', 'x')).toBe(0);
  });

  it('agrees with SQuAD and Search-R1', () => {
    type Pair = { prediction: string; golds: string[]; normalized: string; exactMatch: number; squadF1: number };
    for (const pair of golden<{ pairs: Pair[] }>('grading/qa').pairs) {
      expect(normalizeAnswer(pair.prediction)).toBe(pair.normalized);
      expect(Number(exactMatch(pair.prediction, pair.golds)), pair.prediction).toBe(pair.exactMatch);
      expect(tokenF1(pair.prediction, pair.golds), pair.prediction).toBeCloseTo(pair.squadF1, 12);
    }
  });
});
