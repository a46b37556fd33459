import { describe, expect, it } from 'vitest';
import type { TaskSet } from '../../../base/core/task.js';
import { arithmetic } from '../../../teams/tasks/generated/arithmetic.js';
import { epochOrder, evaluationTasks, furtherTasks, tasksOfStep } from './step-tasks.js';

const numbered = (size: number): TaskSet => ({
  name: 'numbered',
  size,
  at: (index) => {
    if (!Number.isInteger(index) || index < 0 || index >= size) throw new Error(`no task ${index}`);
    return { id: String(index), data: {} };
  },
});
const ids = (set: TaskSet, seed: number, step: number, count: number) =>
  tasksOfStep(set, seed, step, count).map(({ id }) => id);

describe('the tasks of a step', () => {
  it('cover a finite set, in a new order every epoch, also if an epoch ends within a step', () => {
    const walked = [1, 2, 3, 4, 5].flatMap((step) => ids(numbered(10), 1, step, 4));
    const [first, second] = [walked.slice(0, 10), walked.slice(10)];
    const all = Array.from({ length: 10 }, (_, i) => String(i));
    expect([...first].sort()).toEqual(all);
    expect([...second].sort()).toEqual(all);
    expect(first).not.toEqual(all);
    expect(second).not.toEqual(first);
  });

  it('are more than the set has if a step needs more', () => {
    const walked = ids(numbered(3), 1, 1, 7);
    expect(new Set(walked.slice(0, 3)).size).toBe(3);
    expect(new Set(walked.slice(3, 6)).size).toBe(3);
  });

  it('depend only on the seed and the step', () => {
    expect(ids(numbered(50), 1, 2, 8)).toEqual(ids(numbered(50), 1, 2, 8));
    expect(ids(numbered(50), 2, 2, 8)).not.toEqual(ids(numbered(50), 1, 2, 8));
  });

  it('draw the order once an epoch, also for many tasks', () => {
    const set = numbered(1000);
    const order = epochOrder(set, 1, 0);
    tasksOfStep(set, 1, 1, 8);
    tasksOfStep(set, 1, 2, 8);
    expect(epochOrder(set, 1, 0)).toBe(order);
    expect(epochOrder(set, 1, 1)).not.toEqual(order);
    expect(epochOrder(set, 2, 0)).not.toEqual(order);
    expect(epochOrder(set, 1, 0)).toEqual(order);
  });

  it('are drawn from a generated family, others every step and for every seed', async () => {
    const set = await arithmetic().load('train');
    const drawn = [1, 2, 3].flatMap((step) => ids(set, 1, step, 16));
    expect(new Set(drawn).size).toBeGreaterThan(46);
    expect(ids(set, 1, 2, 16)).toEqual(drawn.slice(16, 32));
    expect(ids(set, 2, 1, 16)).not.toEqual(drawn.slice(0, 16));
  });

  it('can be extended: by other tasks, each once, decided by the seed and the step', async () => {
    const further = (seed: number, step: number) => {
      const taken = tasksOfStep(numbered(20), 1, 1, 8);
      return [...furtherTasks(numbered(20), seed, step, taken)].map(({ id }) => id);
    };
    expect([...further(1, 1), ...ids(numbered(20), 1, 1, 8)].sort()).toEqual(
      [...new Array(20).keys()].map(String).sort(),
    );
    expect(further(1, 1)).toEqual(further(1, 1));
    expect(further(2, 1)).not.toEqual(further(1, 1));
    expect(further(1, 2)).not.toEqual(further(1, 1));
    const endless = furtherTasks(await arithmetic().load('train'), 1, 1, []);
    const drawn = Array.from({ length: 30 }, () => endless.next().value?.id);
    expect(new Set(drawn).size).toBe(30);
  });

  it('for evaluation are the first ones, at most all of them', () => {
    expect(evaluationTasks(numbered(3), 2).map(({ id }) => id)).toEqual(['0', '1']);
    expect(evaluationTasks(numbered(3), 9)).toHaveLength(3);
    const joined = { ...numbered(5), parts: [numbered(3), numbered(2)] };
    expect(evaluationTasks(joined, 2).map(({ id }) => id)).toEqual(['0', '1', '0', '1']);
  });
});
