import { expect, it } from 'vitest';
import { TaskError } from '../../../base/core/errors.js';
import { RandomStream } from '../../../base/core/random.js';
import type { TaskSource } from '../../../base/core/task.js';
import { drawTrace, loadTasks, taskAt } from './task-source.js';

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
  const place = '\\n +at .*task-source\\.test\\.ts:\\d+';
  await expect(loadTasks(careless, 'test', schema)).rejects.toThrow(
    new RegExp(`^the tasks 'careless' threw while 'test' was loaded: no such database${place}`),
  );
  const tasks = await loadTasks(careless, 'train', schema);
  expect(taskAt(tasks, 1)).toEqual({ id: 'b', data: 'b' });
  expect(() => taskAt(tasks, 2)).toThrow(
    new RegExp(`^the tasks 'careless \\(train\\)' threw at task 2: no such row${place}`),
  );
  expect(() => taskAt(tasks, 2)).toThrow(TaskError);
  expect(() => drawTrace(careless, random, 'train')).toThrow(
    new RegExp(`^the tasks 'careless' threw for a demonstration: nothing to show${place}`),
  );
});

it('does not change errors of drmas, and accepts sources without demonstrations', async () => {
  const wrong = new TaskError('expected a number', { file: 'tasks.jsonl', line: 3 });
  const source: TaskSource = { ...careless, load: () => Promise.reject(wrong) };
  await expect(loadTasks(source, 'train', schema)).rejects.toBe(wrong);
  const { trace: _, ...silent } = careless;
  expect(drawTrace(silent, random, 'train')).toBeUndefined();
});
