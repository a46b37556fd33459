import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Score, successOf } from '../../base/core/episode.js';
import { missingParts, withPartWeights } from './part-weights.js';
import { scoreOf } from './score.js';

const number = fc.double({ min: -10, max: 10, noNaN: true });
const parts = fc.dictionary(fc.constantFrom('correct', 'attempts', 'calls'), number, { minKeys: 1 });
const weights = fc.dictionary(fc.constantFrom('correct', 'calls', 'other'), fc.double({ min: 0, max: 4, noNaN: true }));

describe('weights of the parts of a reward', () => {
  it('make the reward their weighted sum, and leave the parts and the success alone', () => {
    fc.assert(
      fc.property(parts, weights, (named, weighed) => {
        const score = scoreOf(named, []);
        const { team, parts, success } = withPartWeights(score, weighed);
        const sum = Object.entries(named).reduce((total, [name, value]) => total + value * (weighed[name] ?? 1), 0);
        expect(team).toBeCloseTo(sum, 9);
        expect(parts).toEqual(score.parts);
        expect(success).toBe(successOf({ score }));
      }),
    );
  });

  it('do not change a reward without names, and change nothing if there are no weights', () => {
    const plain = scoreOf(0.5, []);
    const named = scoreOf({ correct: 1 }, []);
    expect(withPartWeights(plain, { correct: 2 })).toBe(plain);
    expect(withPartWeights(named, undefined)).toBe(named);
  });

  it('leave rewards of agents as they are', () => {
    const score = scoreOf({ team: { correct: 1, attempts: -0.1 }, agents: { verifier: 0.2 } }, ['verifier']);
    expect(withPartWeights(score, { attempts: 0 })).toMatchObject({ team: 1, agents: { verifier: 0.2 }, success: 1 });
  });

  it('fail the episode if the sum is too large for statistics', () => {
    expect(() => withPartWeights(scoreOf({ correct: 1 }, []), { correct: 1e31 })).toThrow(/weighted parts/);
  });

  it('are distinguished from weights of parts that no episode earns', () => {
    const score: Score = scoreOf({ correct: 1 }, []);
    expect(missingParts([{ score }], { correct: 0.5, corect: 0.5 })).toEqual(['corect']);
    expect(missingParts([{ score }])).toEqual([]);
  });
});
