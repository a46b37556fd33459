import { describe, expect, it } from 'vitest';
import { headlineOf } from './evaluation.js';

const at = (averageAtK: number, reward: number, parts?: Record<string, number>) => ({
  averageAtK,
  reward,
  ...(parts && { parts }),
});

describe('the headline of a run', () => {
  it.each<[string, ReturnType<typeof at>[], boolean | undefined, string]>([
    ['a reward that never reaches 1', [at(0, 0.2), at(0, 0.31)], false, 'reward'],
    ['a reward that is always above 1', [at(1, 3), at(1, 4)], false, 'reward'],
    ['a reward of 0 and 1', [at(0.25, 0.25), at(0.5, 0.5)], false, 'score'],
    ['a reward of -1 and 1, once it is earned', [at(0, -1), at(0.5, 0)], false, 'score'],
    ['a team that says what success is', [at(0, 0.2), at(0, 0.31)], true, 'score'],
    ['a part `correct`', [at(0, 0.2, { correct: 0, short: 0.2 })], false, 'score'],
    ['a reward of 0 with a cost of calls', [at(0, -0.1, { outcome: 0, calls: -0.1 })], false, 'score'],
    ['a continuous reward with a cost of calls', [at(0, 0.1, { outcome: 0.2, calls: -0.1 })], false, 'reward'],
    [
      'named parts with a cost of calls',
      [at(0, 0.3, { calls: -0.1, quality: 0.4 }), at(0, 0.5, { calls: -0.1, quality: 0.6 })],
      false,
      'reward',
    ],
    [
      'named parts of a reward of 0 and 1, which add up with rounding',
      [at(0.3, 0.2, { calls: -0.1, one: 0.1, two: 0.1, three: 0.1 })],
      false,
      'score',
    ],
    ['a log that does not know', [at(0, 0.2)], undefined, 'score'],
    ['no evaluation', [], false, 'score'],
  ])('of %s', (_, evaluations, saysSuccess, headline) => {
    expect(headlineOf(evaluations, saysSuccess)).toBe(headline);
  });
});
