import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Episode, Turn } from '../../../base/core/episode.js';
import { mean } from '../../../base/core/statistics.js';
import { rewardedTurns } from '../../../teams/rollout/score.js';
import { type Estimator, openEstimator } from '../../advantage/estimators/index.js';
import { stepAdvantages } from './advantages.js';
import { durationWeights } from './duration-weights.js';

const turnsOf = (durations: readonly number[], agent = 'solver') => durations.map((duration) => ({ agent, duration }));
const all = { most: 1e9 };
const durations = fc.array(fc.double({ min: 0.01, max: 100, noNaN: true }), { minLength: 1, maxLength: 20 });

describe('weights by duration', () => {
  it('have mean 1 for each agent, in any unit', () => {
    fc.assert(
      fc.property(durations, durations, fc.constantFrom(1, 1000), (mine, others, unit) => {
        const turns = [...turnsOf(mine.map((d) => d * unit)), ...turnsOf(others, 'verifier')];
        const weights = durationWeights(turns, all);
        expect(mean(weights.slice(0, mine.length))).toBeCloseTo(1, 9);
        expect(mean(weights.slice(mine.length))).toBeCloseTo(1, 9);
        const plain = durationWeights(turnsOf(mine), all);
        weights.slice(0, mine.length).forEach((weight, i) => {
          expect(weight).toBeCloseTo(plain[i] as number, 9);
        });
      }),
    );
  });

  it('give samples of a fixed time the gradient of samples of equal number', () => {
    const actions = [
      { duration: 1, share: 0.5, gradient: 0.3 },
      { duration: 4, share: 0.5, gradient: 1 },
    ];
    const time = 600; // in which an action comes as often as its share over its duration
    const taken = actions.flatMap((action) =>
      Array.from({ length: (time * action.share) / action.duration }, () => action),
    );
    const weights = durationWeights(turnsOf(taken.map(({ duration }) => duration)), all);
    const weighted = taken.reduce((sum, { gradient }, i) => sum + gradient * (weights[i] as number), 0) / taken.length;
    expect(mean(taken.map(({ gradient }) => gradient))).toBeCloseTo(0.44, 12); // the quick one counts four times
    expect(weighted).toBeCloseTo(0.65, 12);
  });

  it('are capped, and are 1 without durations, with zero durations, or if the recipe does not use them', () => {
    expect(durationWeights(turnsOf([1, 1, 1, 997]), { most: 3 }).at(-1)).toBe(3);
    expect(durationWeights([{ agent: 'solver' }, ...turnsOf([2, 2])], all)).toEqual([1, 1, 1]);
    expect(durationWeights(turnsOf([0, 0]), all)).toEqual([1, 1]);
    expect(durationWeights(turnsOf([1, 5]), undefined)).toEqual([1, 1]);
  });
});

describe('advantages of turns with durations', () => {
  const episode = (sample: number, team: number, duration: number) =>
    ({
      task: { id: 'a', data: {} },
      sample,
      outcome: {},
      score: { team, agents: {}, parts: {} },
      turns: [{ agent: 'solver', turn: 0, messages: [], prompt: [sample], response: [1, 2], penalty: 0, duration }],
    }) as unknown as Episode;
  const groups = [{ task: { id: 'a', data: {} }, episodes: [episode(0, 1, 3), episode(1, 0, 1)] }];
  const estimator: Estimator = { type: 'drmas', spread: 'none' };
  const advantagesWith = (training: { readonly durationWeights?: { readonly most: number } }) =>
    stepAdvantages({ estimator: openEstimator(estimator), agents: {}, training }, groups).turns.map(
      ({ advantage }) => advantage,
    );

  it('are multiplied after they were estimated', () => {
    expect(advantagesWith({})).toEqual([0.5, -0.5]);
    expect(advantagesWith({ durationWeights: all })).toEqual([0.75, -0.25]);
  });

  it('come from the reward, which can give a turn a duration', () => {
    const turns = [{ turn: 0 }, { turn: 1 }] as Turn[];
    const rewarded = rewardedTurns({ team: 1, turns: [{ turn: 1, value: 0.5, duration: 2 }] }, turns);
    expect(rewarded).toEqual([{ turn: 0 }, { turn: 1, stepReward: 0.5, duration: 2 }]);
    const wrong = { team: 1, turns: [{ turn: 1, value: 0, duration: -1 }] };
    expect(() => rewardedTurns(wrong, turns)).toThrow('the duration of turn 1 is -1, expected a number >= 0');
  });
});
