import { describe, expect, it } from 'vitest';
import { golden } from '../../../../test/goldens.js';
import { extractBoxed } from './boxed.js';

describe('extractBoxed', () => {
  it('takes the last box, braces inside included', () => {
    expect(extractBoxed('first \\boxed{1}, no, \\boxed{\\frac{1}{2}}.')).toBe('\\frac{1}{2}');
    expect(extractBoxed('\\boxed{}')).toBe('');
  });

  it('has no answer if there is no box, or a truncated one', () => {
    for (const text of ['', 'boxed{5}', '\\boxed 5', '\\boxed{1} \\boxed{2', null, undefined]) {
      expect(extractBoxed(text)).toBeNull();
    }
  });

  it('is linear on hostile text', () => {
    const started = performance.now();
    extractBoxed('\\boxed{'.repeat(200_000));
    extractBoxed(`\\boxed{${'{'.repeat(1_000_000)}`);
    expect(performance.now() - started).toBeLessThan(1000);
  });

  it('agrees with the original', () => {
    type Case = { text: string; answer: string | null };
    for (const { text, answer } of golden<{ cases: Case[] }>('grading/boxed').cases) {
      expect(extractBoxed(text), text).toBe(answer);
    }
  });
});
