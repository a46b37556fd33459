import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { areSimilar, similarity } from './similarity.js';

describe('similarity', () => {
  it('is twice the matched characters over all characters', () => {
    expect(similarity('abcd', 'bcde')).toBe(0.75);
    // "WIKIM" and then "IA" match.
    expect(similarity('WIKIMEDIA', 'WIKIMANIA')).toBeCloseTo(14 / 18, 12);
    expect(similarity('red', '')).toBe(0);
    expect(similarity('', '')).toBe(1);
  });

  it('lies in [0, 1] and is 1 only for equal texts', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 20 }), fc.string({ maxLength: 20 }), (a, b) => {
        const value = similarity(a, b);
        expect(value >= 0 && value <= 1).toBe(true);
        expect(value === 1).toBe(a === b);
      }),
    );
  });

  it('is compared with a threshold as it is, also if a bound decides', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', ' ', '\u{1f642}'), maxLength: 40 });
    fc.assert(
      fc.property(text, text, fc.integer({ min: 1, max: 99 }), (a, b, percent) => {
        expect(areSimilar(a, b, percent / 100)).toBe(similarity(a, b) >= percent / 100);
      }),
    );
    expect([areSimilar('abcd', 'bcde', 0.75), areSimilar('abcd', 'bcde', 0.76)]).toEqual([true, false]);
  });
});
