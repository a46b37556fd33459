import { TaskError } from '@drmas/engine/errors';
import { RandomStream } from '@drmas/engine/math';
import type { TaskSet, TaskSource } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { tinyRecipe } from '../../../../test/support/tiny-run.js';
import { arithmetic } from '../../../teams/tasks/generated/arithmetic.js';
import { curriculumChecks } from './curriculum.js';
import { drawTrace, epochOrder, evaluationTasks, furtherTasks, loadTasks, taskAt, tasksOfStep } from './step-tasks.js';

const schema = { safeParse: (data: unknown) => ({ success: true as const, data }) };
const random = new RandomStream('a test');

/** Rows in a source without error handling; the third row is missing. */
const careless: TaskSource = {
  name: 'careless',
  async load(split) {
    if (split === 'test') throw new Error('no such database');
    const rows = ['a', 'b'];
    return {
      name: 'careless (train)',
      size: 3,
      at(index) {
        const row = rows[index];
        if (row === undefined) throw new RangeError('no such row');
        return { id: row, data: row };
      },
    };
  },
  trace: () => {
    throw new Error('nothing to show');
  },
};

it('names the tasks, the request and the place where their code throws', async () => {
  const place = '\\n +at .*step-tasks\\.test\\.ts:\\d+';
  await expect(loadTasks(careless, 'test', schema)).rejects.toThrow(
    new RegExp(`^the tasks 'careless' threw while 'test' was loaded: no such database${place}`),
  );
  const missing = new RegExp(`^the tasks 'careless \\(train\\)' threw at task 2: no such row${place}`);
  await expect(loadTasks(careless, 'train', schema)).rejects.toThrow(missing); // the last one is tried
  const tasks = await careless.load('train');
  expect(taskAt(tasks, 1)).toEqual({ id: 'b', data: 'b' });
  expect(() => taskAt(tasks, 2)).toThrow(missing);
  expect(() => taskAt(tasks, 2)).toThrow(TaskError);
  expect(() => drawTrace(careless, random, 'train')).toThrow(
    new RegExp(`^the tasks 'careless' threw for a demonstration: nothing to show${place}`),
  );
});

describe('a source that gives something else', () => {
  let asked = 0;
  const task = { id: 'a', data: {} };
  const loaded = (set: unknown) => loadTasks({ name: 'own', load: async () => set as TaskSet }, 'train', schema);

  it.each<[string, unknown, RegExp]>([
    ['no set', undefined, /`load\('train'\)` gave nothing, expected an object with name, size and at/],
    ['a list', [task], /gave \[.*\], expected an object with name, size and at/],
    ['no size', { name: 'own', at: () => task }, /gave the size nothing, expected a whole number/],
    ['half a task', { name: 'own', size: 1.5, at: () => task }, /gave the size 1.5, expected a whole number/],
    ['a bigint', { name: 'own', size: 2n, at: () => task }, /gave the size 2n, expected a whole number/],
    ['no number', { name: 'own', size: Number.NaN, at: () => task }, /gave the size NaN, expected a whole number/],
    [
      'no list of parts',
      { name: 'own', size: 1, at: () => task, parts: null },
      /gave parts that are null, expected a list/,
    ],
    ['no part', { name: 'own', size: 1, at: () => task, parts: [null] }, /gave null, expected an object with name/],
    ['no data', { name: 'own', size: 1, at: () => ({ id: 'a' }) }, /gave the task 'a' without data/],
    [
      'a promise of data',
      { name: 'own', size: 1, at: () => ({ id: 'a', data: Promise.resolve({}) }) },
      /gave the task 'a' whose data are a promise: read them in `load`/,
    ],
    ['no at', { name: 'own', size: 1 }, /whose `at` is nothing, expected a function/],
    ['async at', { name: 'own', size: 1, at: async () => task }, /`at\(0\)` gave a promise.* must not be async/],
    [
      'other data each time',
      { name: 'own', size: Infinity, at: (i: number) => ({ id: `${i}`, data: { n: asked++ } }) },
      /`at\(0\)` gives another task each time.* new RandomStream\('own', index\)/,
    ],
    [
      'another id each time',
      { name: 'own', size: 2, at: () => ({ id: `${asked++}`, data: {} }) },
      /`at\(0\)` gives another task each time/,
    ],
    ['too large a size', { name: 'own', size: 9, at: (i: number) => [task][i] }, /`at\(8\)` gave nothing.* the size 9/],
    ['no id', { name: 'own', size: 1, at: () => ({ data: {} }) }, /`at\(0\)` gave a task with the id nothing/],
    [
      'a number as id',
      { name: 'own', size: 1, at: () => ({ id: 7, data: {} }) },
      /a task with the id 7, expected a text/,
    ],
    ['an empty id', { name: 'own', size: Infinity, at: () => ({ id: '', data: {} }) }, /a task with the id ""/],
    [
      'a part without ids',
      { name: 'own', size: 1, at: () => task, parts: [{ name: 'own', size: 1, at: () => ({}) }] },
      /a task with the id nothing/,
    ],
  ])('%s', async (_, set, message) => {
    await expect(loaded(set)).rejects.toThrow(TaskError);
    await expect(loaded(set)).rejects.toThrow(/^the tasks 'own'/);
    await expect(loaded(set)).rejects.toThrow(message);
  });

  it.each<[string, unknown, RegExp]>([
    ['a promise', Promise.resolve({}), /`trace` gave a promise.* must not be async/],
    ['nothing', undefined, /`trace` gave nothing, expected a demonstration/],
    [
      'no agent',
      { messages: [], response: 'a' },
      /expected a demonstration: an object with agent, messages and response/,
    ],
  ])('%s as a demonstration', (_, trace, message) => {
    expect(() => drawTrace({ ...careless, trace: () => trace as never }, random, 'train')).toThrow(message);
  });
});

it('does not change errors of drmas, and accepts sources without demonstrations', async () => {
  const wrong = new TaskError('expected a number', { file: 'tasks.jsonl', line: 3 });
  const source: TaskSource = { ...careless, load: () => Promise.reject(wrong) };
  await expect(loadTasks(source, 'train', schema)).rejects.toBe(wrong);
  const { trace: _, ...silent } = careless;
  expect(drawTrace(silent, random, 'train')).toBeUndefined();
});

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

describe('two problems with one id', () => {
  const twins = (ids: readonly string[], size = ids.length): TaskSet => ({
    name: 'twins',
    size,
    at: (index) => ({ id: ids[index % ids.length] as string, data: { question: `problem ${index % ids.length}` } }),
  });

  it.each([2, Number.POSITIVE_INFINITY])('are refused in one step, because they would be one group (of %d)', (size) => {
    expect(() => tasksOfStep(twins(['1', '1'], size), 1, 1, 8)).toThrow(
      /^the tasks 'twins' have two problems with the id '1', \{"question":"problem [01]"\} and .*: expected an id for each$/,
    );
    expect(() => [...furtherTasks(twins(['1', '1']), 1, 1, [])]).toThrow(TaskError);
  });

  it('are refused in an evaluation, also in two of its parts', () => {
    const message = /^the tasks '\w+' have two problems with the id '1'/;
    expect(() => evaluationTasks(twins(['1', '2', '1']), 3)).toThrow(message);
    expect(evaluationTasks(twins(['1', '2', '1']), 2)).toHaveLength(2);
    const parts = [twins(['1', '2']), twins(['3', '1'])];
    expect(() => evaluationTasks({ ...twins([]), name: 'both', parts }, 2)).toThrow(message);
  });

  it('are refused by a curriculum of single tasks, also if no step plays both', () => {
    const { training, seed } = tinyRecipe({}, ['training.curriculum.by=task', 'training.tasksPerStep=1']);
    const check = (train: TaskSet) => [...curriculumChecks({ seed, training }, { train })];
    expect(() => check(twins(['1', '2', '1']))).toThrow(/two problems with the id '1'/);
    expect(() => check(twins(['1', '2', '3'], 6))).not.toThrow();
  });

  it('are no problem that is played twice', () => {
    expect(tasksOfStep(twins(['1', '2']), 1, 1, 6)).toHaveLength(6);
    expect([...furtherTasks(twins(['1', '2']), 1, 1, [])]).toHaveLength(2);
  });

  const round = (n: number) => {
    const map = new Map<string, unknown>([['n', n]]);
    return map.set('itself', map);
  };
  it.each<[string, (n: number) => unknown]>([
    ['a text', (n) => `${n}`],
    ['a Map', (n) => new Map([['question', { deep: new Map([[n, 'x']]) }]])],
    ['a Map with objects as keys', (n) => ({ of: new Map([[{ n }, 1]]) })],
    ['a Map in a circle', round],
    ['a Set', (n) => ({ of: new Set([n]) })],
    ['a typed array', (n) => new Float32Array([n])],
    ['an ArrayBuffer', (n) => ({ of: new Uint8Array([n]).buffer })],
    ['a DataView', (n) => ({ of: new DataView(new Uint8Array([9, n]).buffer, 1) })],
    ['a boxed big integer', (n) => ({ of: Object(BigInt(n)) })],
    ['parameters of an address', (n) => ({ of: new URLSearchParams({ n: `${n}` }) })],
    ['a Date', (n) => new Date(n)],
    ['a regular expression', (n) => ({ of: new RegExp(`${n}`) })],
    ['an error', (n) => ({ of: new Error(`${n}`) })],
    ['a big integer', (n) => BigInt(n)],
    ['a number that is not finite', (n) => ({ of: n === 0 ? Number.NaN : Number.POSITIVE_INFINITY })],
    [
      'a class',
      (n) =>
        new (class Question {
          number = n;
        })(),
    ],
  ])('are told apart in %s, and one that is made twice is one', (_, dataOf) => {
    const made = (numbers: readonly number[]): TaskSet => ({
      name: 'made',
      size: numbers.length,
      at: (index) => ({ id: 'same', data: dataOf(numbers[index] as number) }),
    });
    expect(() => evaluationTasks(made([0, 1]), 2)).toThrow(/two problems with the id 'same'/);
    expect(evaluationTasks(made([1, 1]), 2)).toHaveLength(2);
  });
});
