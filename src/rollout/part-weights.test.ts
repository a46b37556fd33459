import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Score, successOf } from '../core/episode.js';
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

  it('change nothing of a reward without names, and nothing where there are none', () => {
    const plain = scoreOf(0.5, []);
    const named = scoreOf({ correct: 1 }, []);
    expect(withPartWeights(plain, { correct: 2 })).toBe(plain);
    expect(withPartWeights(named, undefined)).toBe(named);
  });

  it('leave rewards of agents as they are', () => {
    const score = scoreOf({ team: { correct: 1, attempts: -0.1 }, agents: { verifier: 0.2 } }, ['verifier']);
    expect(withPartWeights(score, { attempts: 0 })).toMatchObject({ team: 1, agents: { verifier: 0.2 }, success: 1 });
  });

  it('fail the episode where the sum is no size that statistics can hold', () => {
    expect(() => withPartWeights(scoreOf({ correct: 1 }, []), { correct: 1e31 })).toThrow(/weighted parts/);
  });

  it('are told apart from those that nobody earns', () => {
    const score: Score = scoreOf({ correct: 1 }, []);
    expect(missingParts([{ score }], { correct: 0.5, corect: 0.5 })).toEqual(['corect']);
    expect(missingParts([{ score }])).toEqual([]);
  });
});
