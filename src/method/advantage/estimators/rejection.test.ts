import { describe, expect, it } from 'vitest';
import { estimateAdvantages } from '../../../runs/composition/estimate-advantages.js';
import type { Estimator } from './index.js';

const turnsOf = (task: string, rewards: readonly number[]) =>
  rewards.flatMap((reward, e) =>
    ['solver', 'verifier'].map((agent, turn) => ({ task, episode: `${task}${e}`, agent, turn, reward })),
  );
const twice = (values: readonly number[]) => values.flatMap((value) => [value, value]);
const records = [...turnsOf('a', [1, 0, 1, 0.5]), ...turnsOf('b', [0, -1]), ...turnsOf('c', [0.25])];
const estimate = (choices: Omit<Extract<Estimator, { type: 'rejection' }>, 'type'>) =>
  estimateAdvantages(records, { type: 'rejection', ...choices });

describe('rejection', () => {
  it('gives the turns of accepted episodes 1 and the other turns 0', () => {
    expect(estimate({})).toEqual(twice([1, 0, 1, 1, 0, 0, 1]));
    expect(estimate({ above: 0.5 })).toEqual(twice([1, 0, 1, 0, 0, 0, 0]));
    expect(estimate({ above: -1 })).toEqual(twice([1, 1, 1, 1, 1, 0, 1]));
  });

  it("keeps each task's best episodes, which share the task's weight", () => {
    expect(estimate({ keep: 'best' })).toEqual(twice([1 / 2, 0, 1 / 2, 0, 0, 0, 1]));
    expect(estimate({ keep: 'best', above: -1 })).toEqual(twice([1 / 2, 0, 1 / 2, 0, 1, 0, 1]));
  });

  it("a task's best stays the best when a constant is added to every reward, as long as the bound is below", () => {
    const moved = records.map((record) => ({ ...record, reward: record.reward + 3 }));
    const estimator = { type: 'rejection', keep: 'best', above: -1e6 } as const;
    expect(estimateAdvantages(moved, estimator)).toEqual(estimateAdvantages(records, estimator));
  });

  it('accepts whole episodes, by their score', () => {
    const penalised = records.map((record, i) => (i === 1 ? { ...record, reward: 0.5 } : record));
    const choices = { type: 'rejection', above: 0.7 } as const;
    expect(estimateAdvantages(penalised, choices).slice(0, 4)).toEqual([1, 1, 0, 0]);
    expect(estimateAdvantages(penalised, { ...choices, above: 0.8 }).slice(0, 4)).toEqual([0, 0, 0, 0]);
  });
});
