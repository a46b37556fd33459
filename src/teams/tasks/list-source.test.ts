import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fieldText } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { temporaryRoot, tinyDefinition, tinyRecipe } from '../../../test/support/tiny-run.js';
import { jsonl } from './files/file-source.js';
import { listSource } from './list-source.js';

const root = temporaryRoot();
const schema = z.object({ question: z.string(), level: z.coerce.number().optional() });

describe('a list of tasks', () => {
  it('has the data of each task as the schema of the team makes them, and its id or place', async () => {
    const list = [{ id: 7, question: 'a', level: '2' }, { question: 'b' }];
    const set = await listSource<unknown>(list, 'tasks.train').load('train', schema);
    expect([set.size, set.at(0), set.at(1)]).toEqual([
      2,
      { id: '7', data: { question: 'a', level: 2 }, metadata: { level: '2' } },
      { id: 'tasks.train:2', data: { question: 'b' } },
    ]);
    expect((await listSource(list, 'tasks').load('test')).at(1).data).toBe(list[1]);
  });

  it.each([z.string(), z.number(), z.union([z.number(), z.string()])])(
    'has the answers of a file: %#',
    async (answer) => {
      const shape = z.object({ question: z.string(), answer });
      for (const given of [42, '42', 0.5, 1e-7, true, null]) {
        const row = { question: '6*7', answer: given };
        const path = join(root, 'rows.jsonl');
        await writeFile(path, JSON.stringify(row));
        const dataOf = (source: ReturnType<typeof jsonl<unknown>>) =>
          source.load('train', shape).then(
            (set) => set.at(0).data,
            () => 'refused',
          );
        expect(await dataOf(listSource<unknown>([row], 'tasks'))).toEqual(await dataOf(jsonl<unknown>(path)));
      }
    },
  );

  it.each<[string, readonly unknown[], string]>([
    ['an empty list', [], 'tasks.test: expected at least one task, the list is empty'],
    [
      'a task that does not fit',
      [{ question: 'a' }, { question: 1 }],
      "tasks.test: row 2: does not fit the team's task: question: ",
    ],
    ['no object', [null], "tasks.test: row 1: does not fit the team's task: "],
    [
      'an id that repeats',
      [
        { id: 'x', question: 'a' },
        { id: 'x', question: 'b' },
      ],
      "tasks.test: row 2: the id 'x' is already used in row 1",
    ],
  ])('refuses %s', async (_, list, message) => {
    await expect(listSource(list, 'tasks.test').load('test', schema)).rejects.toThrow(message);
  });

  it('names the faults of a task as it is written, not of its number as a text', async () => {
    const numeric = schema.extend({ answer: z.number() });
    const refused = listSource<unknown>([{ question: 1, answer: 2 }], 'tasks').load('test', numeric);
    await expect(refused).rejects.toThrow(/task: question: [^;]*, got/);
  });

  it('has fields for a curriculum that the data of the team leave out', async () => {
    const list = [{ question: 'a', difficulty: 'hard' }];
    const set = await listSource<unknown>(list, 'tasks').load('train', schema);
    expect(fieldText(set.at(0), 'difficulty')).toBe('hard');
  });

  it('stands in a recipe for a source: for both splits, for one, or for a benchmark', async () => {
    const list = [{ question: '1+1', answer: 2 }];
    const { tasks } = tinyDefinition().input;
    const sources = [tinyRecipe({ tasks: list }).tasks.train, tinyRecipe({ tasks: list }).tasks.test];
    for (const source of [...sources, tinyRecipe({ tasks: { train: tasks as never, test: list } }).tasks.test])
      expect((await source.load('test')).size).toBe(1);
    expect(tinyRecipe({ tasks: { train: list, test: { few: list } } }).tasks.test.name).toBe('few');
  });
});
