import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { RecipeError, TaskError } from '../core/errors.js';
import type { TaskSet } from '../core/task.js';
import { type JsonlOptions, jsonl } from './jsonl.js';

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tasks-'));
});
afterAll(() => rm(directory, { recursive: true }));

const file = async (content: string | Uint8Array, name = 'train.jsonl') => {
  const path = join(directory, name);
  await writeFile(path, content);
  return path;
};

const all = <Data>(set: TaskSet<Data>) => Array.from({ length: set.size }, (_, i) => set.at(i));
const read = async (content: string, options: JsonlOptions = {}, name?: string) =>
  all(await jsonl(await file(content, name), options).load('train'));
const one = (fields: object) => JSON.stringify(fields);

describe('a task file', () => {
  it('is read line by line, with a byte order mark, CRLF and blank lines', async () => {
    const lines = [one({ question: 'a', answer: '1' }), '', '  ', one({ question: 'b', answer: 2, extra: [true] }), ''];
    expect(await read(`\ufeff${lines.join('\r\n')}`)).toEqual([
      { id: 'train.jsonl:1', data: { question: 'a', answer: '1' } },
      { id: 'train.jsonl:4', data: { question: 'b', answer: '2', extra: [true] } },
    ]);
  });

  it('may be an array, whatever its name, and names its entries by line', async () => {
    const text = '\n[ {"question": "a, ]", "answer": "\\"[1"},\n\n\n {"question": "b",\n "answer": "2"}\n]\n';
    const tasks = await read(text, {}, 'tasks.txt');
    expect(tasks.map(({ id, data }) => [id, data.question, data.answer])).toEqual([
      ['tasks.txt:2', 'a, ]', '"[1'],
      ['tasks.txt:5', 'b', '2'],
    ]);
  });

  it('is found from the working directory', async () => {
    const path = await file(one({ question: 'a', answer: '1' }));
    expect((await jsonl(relative(process.cwd(), path)).load('test')).size).toBe(1);
  });

  it('has its final answers taken out of worked solutions', async () => {
    const answers = ['3 - 1 = 2\n#### 2', 'so \\boxed{\\frac{1}{2}}', '  x  ', '1 #### 2 \\boxed{3} #### 4'];
    const tasks = await read(answers.map((answer) => one({ problem: 'q', solution: answer })).join('\n'));
    expect(tasks.map(({ data }) => data.answer)).toEqual(['2', '\\frac{1}{2}', 'x', '4']);
  });

  it('is read through a field mapping, with dotted names and functions', async () => {
    const row = { key: 7, input: { text: 'q' }, 'a.b': 'literal', a: { b: 'nested' }, out: { n: 3 } };
    expect(await read(one(row), { question: 'input.text', answer: 'a.b', id: 'key' })).toMatchObject([
      { id: '7', data: { question: 'q', answer: 'literal' } },
    ]);
    const answer = ({ out }: Record<string, unknown>) => (out as { n: number }).n + 1;
    expect(await read(one(row), { question: 'input.text', answer })).toMatchObject([{ data: { answer: '4' } }]);
  });

  it("is checked by the team's schema, which may ask for something else altogether", async () => {
    const rows = [one({ question: 'q', answer: '1', level: 2 }), one({ question: 'q', answer: '1', level: 'hard' })];
    const path = await file(rows.join('\n'));
    const schema = z.object({ question: z.string(), level: z.union([z.number(), z.literal('hard')]) });
    const tasks = all(await jsonl<z.output<typeof schema>>(path).load('train', schema));
    expect(tasks.map(({ data }) => data)).toEqual([
      { question: 'q', level: 2 },
      { question: 'q', level: 'hard' },
    ]);
    const strict = z.object({ question: z.string(), level: z.number() });
    await expect(jsonl<z.output<typeof strict>>(path).load('train', strict)).rejects.toThrow(
      `${path}:2: does not fit the team's task: level: `,
    );
    const other = z.object({ text: z.string() });
    const texts = await file(one({ text: 'neither question nor answer' }));
    expect((await jsonl<z.output<typeof other>>(texts).load('train', other)).at(0).data.text).toContain('neither');
  });

  it('may have numeric answers, for teams that want numbers and for those that want text', async () => {
    const path = await file(one({ question: 'q', answer: 42 }));
    const number = z.object({ answer: z.number() });
    expect((await jsonl<z.output<typeof number>>(path).load('train', number)).at(0).data).toEqual({ answer: 42 });
    const text = z.object({ answer: z.string() });
    expect((await jsonl<z.output<typeof text>>(path).load('train', text)).at(0).data).toEqual({ answer: '42' });
  });

  it('loses the tasks whose answer is null or empty, and says so', async () => {
    const path = await file([1, null, 3, ''].map((answer) => one({ question: 'q', answer })).join('\n'));
    const set = await jsonl(path).load('train');
    expect(all(set).map(({ id }) => id)).toEqual(['train.jsonl:1', 'train.jsonl:3']);
    expect(set.warnings).toEqual([`${path}:2: 2 of 4 tasks left out, their answer is null or empty`]);
  });

  it('can hold both splits, by a share of the questions or by a field, without overlap', async () => {
    const rows = Array.from({ length: 400 }, (_, i) => ({
      question: `q${i % 200}`,
      answer: '1',
      of: i % 4 ? 'train' : 'test',
    }));
    const path = await file(rows.map(one).join('\n'));
    const questions = async (split: 'train' | 'test', options: JsonlOptions) =>
      all(await jsonl(path, options).load(split)).map(({ data }) => data.question);
    const [train, test] = await Promise.all([questions('train', { test: 0.25 }), questions('test', { test: 0.25 })]);
    expect(train.length + test.length).toBe(400);
    expect(test.length / 400).toBeCloseTo(0.25, 1);
    expect(train.filter((question) => test.includes(question))).toEqual([]);
    expect(await questions('train', { split: 'of' })).toHaveLength(300);
    expect(await questions('test', { split: 'of' })).toHaveLength(100);
  });

  it('shows its settings, and can be replaced through them', async () => {
    const answer = () => 'from a function';
    const source = jsonl(await file('[]'), { answer, id: 'key' });
    const settings = { question: null, answer: null, id: 'key', split: null, test: null };
    expect(source.settings).toEqual({ file: join(directory, 'train.jsonl'), ...settings });
    const other = await file(one({ question: 'q', key: 'k' }), 'other.jsonl');
    const changed = source.configure?.({ ...source.settings, file: other });
    expect((await changed?.load('train'))?.at(0)).toMatchObject({ id: 'k', data: { answer: 'from a function' } });
    expect(() => source.configure?.({ file: 7 })).toThrow('jsonl: file: expected a path');
    expect(() => source.configure?.({ ...settings, file: other, test: 2 })).toThrow(RecipeError);
  });

  it('refuses options that make no sense', () => {
    expect(() => jsonl('x', { test: 0.1, split: 'of' })).toThrow('split and test cannot both be given');
    expect(() => jsonl('x', { answer: 7 } as never)).toThrow(
      'jsonl: answer: expected the name of a field or a function',
    );
    expect(() => jsonl('x', { anser: 'a' } as never)).toThrow('anser');
  });
});

describe('a bad task file is refused with file, line and what was expected:', () => {
  const good = one({ question: 'q', answer: '1' });

  it.each<[string, string | Uint8Array, JsonlOptions, string]>([
    ['no rows', ' \n\n', {}, ': expected at least one task, the file holds none'],
    ['an empty array', '[ ]', {}, ': expected at least one task, the file holds none'],
    ['broken JSON', `${good}\n{"question": }`, {}, ':2: expected JSON, got {"question": } ('],
    [
      'broken JSON in an array',
      `[${good},\n${good},\n{"question": oops}]`,
      {},
      ':3: expected JSON, got {"question": oops} (',
    ],
    ['an open array', `[${good},\n`, {}, ':2: the array is not closed'],
    ['a trailing comma', `[${good},\n]`, {}, ':2: expected JSON, got  ('],
    ['more after the array', `[${good}]\n${good}`, {}, ':1: expected nothing after the array, got {"question'],
    ['no object', `${good}\n[1]`, {}, ':2: expected a JSON object with a string "question" or "problem", got [1]'],
    [
      'no question',
      one({ answer: '1' }),
      {},
      ':1: expected a JSON object with a string "question" or "problem", got {"answer":"1"}',
    ],
    [
      'a question that is no text',
      one({ q: 5, answer: '1' }),
      { question: 'q' },
      ':1: expected a JSON object with a string "q", got {"q":5',
    ],
    [
      'no answer',
      `${good}\n\n${one({ question: 'q' })}`,
      {},
      ':3: expected a string or number "answer" or "solution", got {"question":"q"}',
    ],
    [
      'no answer from a function',
      good,
      { answer: () => undefined },
      ':1: expected the answer function to return a string or a number, got ',
    ],
    ['an id twice', '{"id":1,"question":"q","answer":"1"}\n'.repeat(2), {}, ":2: the id '1' is already that of line 1"],
    [
      'an unknown split',
      one({ question: 'q', answer: '1', of: 'dev' }),
      { split: 'of' },
      ':1: expected "train" or "test" in "of", got "dev"',
    ],
    [
      'an empty split',
      one({ question: 'q', answer: '1', of: 'test' }),
      { split: 'of' },
      ": expected at least one task of the split 'train'",
    ],
    ['no UTF-8', Uint8Array.of(0x7b, 0xff, 0x7d), {}, ': expected UTF-8 text'],
  ])('%s', async (_, content, options, message) => {
    const path = await file(content);
    const error = await jsonl(path, options)
      .load('train')
      .catch((thrown) => thrown);
    expect(error).toBeInstanceOf(TaskError);
    expect(error.message).toContain(path + message);
  });

  it('none at all', async () => {
    const path = join(directory, 'missing.jsonl');
    await expect(jsonl(path).load('train')).rejects.toThrow(`${path}: cannot be read (ENOENT`);
    await expect(jsonl(directory).load('train')).rejects.toThrow(`${directory}: cannot be read (EISDIR`);
  });

  it('a task that is not there', async () => {
    const set = await jsonl(await file(good)).load('train');
    expect(() => set.at(1)).toThrow('there is no task 1 among 1');
  });
});

const data = fileURLToPath(new URL('../../../shared/data/', import.meta.url));

describe.skipIf(!existsSync(data))('the task files in ../shared/data (skipped where they are missing)', () => {
  const schema = z.object({ question: z.string().min(1), answer: z.string().min(1) });

  it.each([
    ['gsm8k/train.jsonl', 7473, '72'],
    ['gsm8k/test.jsonl', 1319, '18'],
    ['math/train.json', 7470, '0'], // of its 7474 answers two are null and two empty
    ['math/math500.json', 500, '\\left( 3, \\frac{\\pi}{2} \\right)'],
  ])('%s', async (name, size, first) => {
    const set = await jsonl(join(data, name)).load('train', schema);
    expect(set.size).toBe(size);
    expect(set.at(0).data.answer).toBe(first);
    const answers = all(set).map((task) => task.data.answer);
    expect(answers.filter((answer) => answer.includes('####'))).toEqual([]);
    if (name.startsWith('gsm8k')) expect(answers.filter((answer) => !/^-?[\d,.]+$/.test(answer))).toEqual([]);
  });
});
