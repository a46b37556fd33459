import { RecipeError } from '@drmas/engine/errors';
import type { Task } from '@drmas/engine/nouns';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fakeRun } from '../../../../test/support/fake-run.js';
import {
  filesOf,
  resumedTiny,
  stepsOf,
  temporaryRoot,
  tinyRecipe,
  trainTiny,
} from '../../../../test/support/tiny-run.js';
import { arithmetic } from '../../../teams/tasks/generated/arithmetic.js';
import { mix } from '../../../teams/tasks/mix.js';
import { playStep } from '../step/play-step.js';
import { weightOf } from './curriculum.js';
import { groupSizesOf } from './group-sizes.js';

const root = temporaryRoot();

const settings = (groupSize: number, least: number | undefined, target = 0.5) => {
  const { training } = tinyRecipe();
  const groupSizes = least === undefined ? {} : { groupSizes: { least } };
  const curriculum = { by: 'level', target, decay: 0.8, candidates: 4, ...groupSizes };
  return { training: { ...training, groupSize, curriculum } };
};
const tasksOf = (levels: readonly string[]): Task[] =>
  levels.map((level, i) => ({ id: `t${i}`, data: {}, metadata: { level } }));

const names = ['a', 'b', 'c', 'd', 'e'];
const probability = fc.double({ min: 0, max: 1, noNaN: true });
const anything = fc.record({
  levels: fc.array(fc.constantFrom(...names), { minLength: 1, maxLength: 20 }),
  predictions: fc.dictionary(fc.constantFrom(...names), probability),
  least: fc.integer({ min: 2, max: 6 }),
  more: fc.integer({ min: 0, max: 30 }),
  target: probability,
});

describe('the episodes of the tasks of a step', () => {
  it('are as many as with equal groups, and no task has fewer than the least', () => {
    fc.assert(
      fc.property(anything, ({ levels, predictions, least, more, target }) => {
        const sizes = groupSizesOf(tasksOf(levels), settings(least + more, least, target), predictions) as number[];
        expect(sizes).toHaveLength(levels.length);
        expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(levels.length * (least + more));
        expect(sizes.filter((size) => !Number.isInteger(size) || size < least)).toEqual([]);
      }),
    );
  });

  it('are more if the prediction is nearer to the target, in proportion to the weights', () => {
    fc.assert(
      fc.property(anything, ({ levels, predictions, least, more, target }) => {
        const sizes = groupSizesOf(tasksOf(levels), settings(least + more, least, target), predictions) as number[];
        const weights = levels.map((level) => weightOf(predictions[level], { target }));
        const sum = weights.reduce((total, weight) => total + weight, 0);
        const far = sizes.filter((size, i) => {
          const share = least + (levels.length * more * (weights[i] as number)) / sum;
          return !(Math.abs(size - share) < 1 + 1e-6);
        });
        expect(far).toEqual([]);
      }),
    );
    const levels = ['a', 'b', 'c', 'd'];
    // Weights of 1.05, .65, .45 and .05 divide 4 x 6 episodes: 11.45, 7.09, 4.91 and .55 besides the two of each task.
    const sizes = groupSizesOf(tasksOf(levels), settings(8, 2), { a: 0.5, b: 0.7, c: 0.2, d: 1 });
    expect(sizes).toEqual([13, 9, 7, 3]);
  });

  it('are equal if the predictions are equal, and without the setting', () => {
    expect(groupSizesOf(tasksOf(['a', 'b', 'c']), settings(7, 3), {})).toEqual([7, 7, 7]);
    expect(groupSizesOf(tasksOf(['a', 'a']), settings(5, 2), { a: 0.93 })).toEqual([5, 5]);
    expect(groupSizesOf(tasksOf(['a', 'b']), settings(5, undefined), { a: 0.5, b: 1 })).toBe(5);
  });
});

describe('a run with groups of different sizes', () => {
  const short = { warmStartOperations: [1, 2], top: 19 } as const;
  const [easy, hard] = [arithmetic({ ...short, operations: [1, 1] }), arithmetic({ ...short, operations: [2, 3] })];
  const changes = { tasks: mix({ easy, hard }, [1, 2]), warmStart: { steps: 12, batch: 4 } };
  const by = ['training.curriculum.by=operations', 'training.curriculum.candidates=1', 'training.groupSize=6'];
  const shared = [...by, 'training.curriculum.groupSizes.least=2'];

  it('plays as many episodes as a run with equal groups, but other numbers of each task', async () => {
    const { run } = await fakeRun(root, tinyRecipe(changes, [...shared, 'training.tasksPerStep=6']), () => '3');
    const predictions = { 1: 0.5, 2: 1, 3: 0.05 };
    const { all, levels } = await playStep(run, { step: 0, predictions });
    const sizes = all.map(({ episodes }) => episodes.length);
    expect(sizes).toEqual(
      groupSizesOf(
        all.map(({ task }) => task),
        run,
        predictions,
      ),
    );
    expect(new Set(sizes).size).toBeGreaterThan(1);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(36);
    expect(Object.values(levels ?? {}).reduce((sum, { episodes = 0 }) => sum + episodes, 0)).toBe(36);
    for (const { episodes } of all) expect(episodes.map(({ sample }) => sample)).toEqual([...episodes.keys()]);
  });

  it('resumes after an interruption without a difference, also with rollouts ahead', {
    tags: 'verify',
  }, async () => {
    for (const more of [[], ['rollout.staleness=1']]) {
      const recipe = () => tinyRecipe(changes, [...shared, ...more]);
      const whole = await trainTiny(root, recipe());
      expect(await filesOf(await resumedTiny(root, recipe(), 2))).toEqual(await filesOf(whole));
      for (const { episodes } of await stepsOf(whole)) expect(episodes?.played).toBe(12);
    }
  });

  it.each([6, 7])('requires that the least leaves episodes to divide: %d of 6 does not', async (least) => {
    const overrides = [...by, `training.curriculum.groupSizes.least=${least}`];
    await expect(trainTiny(root, tinyRecipe(changes, overrides))).rejects.toThrow(RecipeError);
    await expect(trainTiny(root, tinyRecipe(changes, overrides))).rejects.toThrow(
      'training.curriculum.groupSizes.least: a step has training.groupSize (6) episodes for each task: expected fewer',
    );
  });
});
