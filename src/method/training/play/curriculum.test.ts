import type { Episode, Task, TaskSet } from '@drmas/engine/nouns';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  eventsOf,
  filesOf,
  resumedTiny,
  stepsOf,
  temporaryRoot,
  tinyRecipe,
  trainTiny,
} from '../../../../test/support/tiny-run.js';
import { arithmetic } from '../../../teams/tasks/generated/arithmetic.js';
import { mix } from '../../../teams/tasks/mix.js';
import { curriculumChecks, levelsOf, predictionsAfter, tasksByPrediction, weightOf } from './curriculum.js';
import { tasksOfStep } from './step-tasks.js';

const root = temporaryRoot();

/** Task n is of level n modulo 3. */
const levelled = (size: number): TaskSet => ({
  name: 'levelled',
  size,
  at: (index) => ({ id: `t${index}`, data: {}, metadata: { level: index % 3 } }),
});
const settings = (changes: object = {}) => {
  const recipe = tinyRecipe();
  const curriculum = { by: 'level', target: 0.5, decay: 0.8, candidates: 4, ...changes };
  return { ...recipe, training: { ...recipe.training, tasksPerStep: 8, curriculum } };
};
const countOf = (tasks: readonly Task[], level: number) =>
  tasks.filter((task) => task.metadata?.level === level).length;

describe('the tasks that a curriculum draws', () => {
  it('are likelier the nearer they are to the target, and all are played sometimes', () => {
    const drawn = Array.from({ length: 150 }, (_, step) =>
      tasksByPrediction(levelled(Number.POSITIVE_INFINITY), settings(), step + 1, { 0: 0.5, 1: 0.9, 2: 0 }),
    ).flat();
    expect(drawn).toHaveLength(1200);
    expect(countOf(drawn, 0)).toBeGreaterThan(1.5 * countOf(drawn, 1));
    expect(countOf(drawn, 1)).toBeGreaterThan(1.5 * countOf(drawn, 2));
    expect(countOf(drawn, 2)).toBeGreaterThan(12);
    const [known, unknown] = [weightOf(0.6, { target: 0.5 }), weightOf(undefined, { target: 0.5 })];
    expect(unknown).toBeGreaterThan(known);
  });

  it('are all different if the source has enough, and a run without a curriculum would play them too', () => {
    const anything = fc.record({ size: fc.integer({ min: 1, max: 60 }), step: fc.integer({ min: 1, max: 40 }) });
    const predictions = fc.dictionary(fc.constantFrom('0', '1', '2'), fc.double({ min: 0, max: 1, noNaN: true }));
    fc.assert(
      fc.property(anything, predictions, ({ size, step }, known) => {
        const drawn = tasksByPrediction(levelled(size), settings(), step, known);
        expect(drawn).toHaveLength(8);
        expect(tasksByPrediction(levelled(size), settings(), step, known)).toEqual(drawn);
        const walked = new Set(tasksOfStep(levelled(size), 1, step, 32).map(({ id }) => id));
        for (const { id } of drawn) expect(walked).toContain(id);
        expect(new Set(drawn.map(({ id }) => id)).size).toBe(Math.min(8, walked.size));
      }),
      { numRuns: 25 },
    );
  });

  it('are the usual tasks of the step without a curriculum', () => {
    const { curriculum: _, ...training } = settings().training;
    const plain = tasksByPrediction(levelled(50), { ...settings(), training }, 3, {});
    expect(plain).toEqual(tasksOfStep(levelled(50), 1, 3, 8));
  });

  it('are the usual tasks of the step if there are no more candidates than tasks', () => {
    const known = { 0: 0.5, 1: 0.9, 2: 0 };
    const drawn = tasksByPrediction(levelled(50), settings({ candidates: 1 }), 3, known);
    expect(drawn).toEqual(tasksOfStep(levelled(50), 1, 3, 8));
  });
});

describe('the predictions', () => {
  const episode = (task: Task, team: number) => ({ task, score: { team, agents: {}, parts: {} } }) as Episode;
  const groups = [0, 1, 3].map((index) => {
    const task = levelled(9).at(index);
    return { task, episodes: [episode(task, 1), episode(task, index === 3 ? 1 : 0)] };
  });
  const train = levelled(9);

  it('move to the achieved success, and stay if no task of the level was played', () => {
    const before = { 0: 0.25, 2: 0.125 };
    const levels = levelsOf(groups, settings(), { train }, before);
    expect(levels).toEqual({ 0: { tasks: 2, success: 0.75, predicted: 0.25 }, 1: { tasks: 1, success: 0.5 } });
    const after = predictionsAfter(before, levels, settings({ decay: 0.5 }));
    expect(after).toEqual({ 0: 0.5, 1: 0.5, 2: 0.125 });
  });

  it('know of a level only what was played, whatever its name is', () => {
    const named: TaskSet = {
      ...train,
      at: (index) => ({ id: `t${index}`, data: {}, metadata: { level: 'constructor' } }),
    };
    const task = named.at(0);
    const all = [{ task, episodes: [episode(task, 1), episode(task, 0)] }];
    const levels = levelsOf(all, settings(), { train: named }, {});
    expect(levels).toEqual({ constructor: { tasks: 1, success: 0.5 } });
    expect(predictionsAfter({}, levels, settings())).toEqual({ constructor: 0.5 });
    expect(tasksByPrediction(named, settings(), 1, {})).toHaveLength(8);
  });

  it('are kept for each task separately if the recipe chooses so', () => {
    expect(Object.keys(levelsOf(groups, settings({ by: 'task' }), { train }, {}) ?? {})).toEqual(['t0', 't1', 't3']);
  });

  it('count the episodes of a level if groups differ in size', () => {
    const levels = levelsOf(groups, settings({ groupSizes: { least: 2 } }), { train }, {});
    expect(levels).toMatchObject({ 0: { tasks: 2, episodes: 4 }, 1: { tasks: 1, episodes: 2 } });
  });

  it('require levels that exist', () => {
    const messages = (by: string, set: TaskSet) =>
      [...curriculumChecks(settings({ by }), { train: set })].filter(({ test }) => !test);
    expect(messages('level', train)).toEqual([]);
    expect(messages('task', train)).toEqual([]);
    const path = 'training.curriculum.by';
    expect(messages('hops', train)).toMatchObject([{ path, message: "no task of 'levelled' has the field 'hops'" }]);
    expect(messages('task', levelled(Number.POSITIVE_INFINITY))).toMatchObject([{ path }]);
  });
});

describe('a run with a curriculum', () => {
  const short = { warmStartOperations: [1, 2], top: 19 } as const;
  const [easy, hard] = [arithmetic({ ...short, operations: [1, 1] }), arithmetic({ ...short, operations: [2, 3] })];
  const tasks = mix({ easy, hard }, [1, 2]);
  const changes = { tasks, warmStart: { steps: 12, batch: 4 } };
  const overrides = ['training.curriculum.by=operations', 'training.curriculum.target=0.1'];

  it('records the levels of every step, and resumes after an interruption without a difference', {
    tags: 'verify',
  }, async () => {
    const recipe = () => tinyRecipe(changes, overrides);
    const whole = await trainTiny(root, recipe());
    const resumed = await resumedTiny(root, recipe(), 2);
    expect(await filesOf(resumed)).toEqual(await filesOf(whole));
    const steps = await stepsOf(whole);
    expect((await stepsOf(resumed)).slice(-2)).toEqual(steps.slice(-2));
    for (const { levels = {} } of steps) {
      expect(Object.values(levels).reduce((sum, { tasks }) => sum + tasks, 0)).toBe(2);
      for (const level of Object.keys(levels)) expect(['1', '2', '3']).toContain(level);
    }
    expect(Object.values(steps[3]?.levels ?? {}).some(({ predicted }) => predicted !== undefined)).toBe(true);
  });

  it('works with rollouts that begin ahead', { tags: 'verify' }, async () => {
    const ahead = () => tinyRecipe(changes, [...overrides, 'rollout.staleness=1']);
    const whole = await trainTiny(root, ahead());
    expect(await filesOf(await resumedTiny(root, ahead(), 2))).toEqual(await filesOf(whole));
  });

  it('or without one records the results by part of a mixture, in steps and evaluations', {
    tags: 'verify',
  }, async () => {
    const run = await trainTiny(root, tinyRecipe(changes));
    const [step] = await stepsOf(run);
    for (const name of Object.keys(step?.levels ?? { none: 0 })) expect(['easy', 'hard']).toContain(name);
    const evaluation = (await eventsOf(run)).find(({ type }) => type === 'evaluation');
    expect(evaluation).toMatchObject({ tasks: 6, slices: { benchmark: { easy: { tasks: 3 }, hard: { tasks: 3 } } } });
    expect(await filesOf(await resumedTiny(root, tinyRecipe(changes), 2))).toEqual(await filesOf(run));
  });
});
