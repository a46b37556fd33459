import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { RecipeError, TaskError } from '@drmas/engine/errors';
import type { TaskSet } from '@drmas/engine/nouns';
import { JsonSplitter, jsonRows } from '@drmas/engine/platform';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { FileOptions, JsonlOptions } from '../task-options.js';
import { file as fileTasks, jsonl } from './file-source.js';

const fixture = (name: string) => fileURLToPath(new URL(`../../../../test/fixtures/${name}`, import.meta.url));

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

  it('may be an array, with any extension, and names its entries by line', async () => {
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

  it.each([
    ['Then $x = \\boxed 7$.', '7'],
    ['is $\\boxed {12}$, not $1$', '12'],
    ['so $n=\\boxed 3 \\frac12$', '3 \\frac12'],
    ['\\boxed 5', '5'],
    ['so \\fbox{42} is it', '42'],
    ['first $\\boxed 2$, then $\\boxed{3}$', '3'],
    ['no box', 'no box'],
  ])('has its final answer taken out of a box that people write: %s', async (solution, answer) => {
    expect((await read(one({ problem: 'q', solution }))).map(({ data }) => data.answer)).toEqual([answer]);
  });

  it('is read through a field mapping, with dotted names and functions', async () => {
    const row = { key: 7, input: { text: 'q' }, 'a.b': 'literal', a: { b: 'nested' }, out: { n: 3 } };
    expect(await read(one(row), { question: 'input.text', answer: 'a.b', id: 'key' })).toMatchObject([
      { id: '7', data: { question: 'q', answer: 'literal' } },
    ]);
    const answer = ({ out }: Record<string, unknown>) => (out as { n: number }).n + 1;
    expect(await read(one(row), { question: 'input.text', answer })).toMatchObject([{ data: { answer: '4' } }]);
  });

  it("is checked by the team's schema, which may need different fields", async () => {
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

  it('keeps the digits of ids and answers that JavaScript would round', async () => {
    const [id, other, answer] = ['12345678901234567890', '12345678901234567891', '9007199254740993'];
    const lines = [
      `{"id":${id},"question":"a","answer":${answer}}`,
      `{"id":${other},"question":"b","answer":[-${id}]}`,
    ];
    const expected = [
      { id, data: { question: 'a', answer } },
      { id: other, data: { question: 'b', answer: `-${id}` } },
    ];
    for (const content of [lines.join('\n'), `[${lines.join(',\n')}]`]) {
      const tasks = await read(content);
      expect(tasks.map(({ id, data: { question, answer } }) => ({ id, data: { question, answer } }))).toEqual(expected);
    }
    const [{ data } = { data: undefined }] = await read('{"question":"a","answer":9007199254740992}');
    expect(data?.answer).toBe('9007199254740992');
  });

  it('says so if no task is left because none has an answer', async () => {
    const path = await file([null, ''].map((answer) => one({ question: 'q', answer })).join('\n'));
    await expect(jsonl(path).load('test')).rejects.toThrow('2 of 2 tasks left out, their answer is null or empty');
  });

  it('leaves out tasks whose answer is null or empty, with a warning', async () => {
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
    const settings = { question: null, answer: null, id: 'key', split: null, metadata: null, test: null };
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

describe('a bad task file is refused with file, line and the expected value:', () => {
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
      'a question that is not text',
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
    ['an id twice', '{"id":1,"question":"q","answer":"1"}\n'.repeat(2), {}, ":2: the id '1' is already used in line 1"],
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
    const table = join(directory, 'missing.parquet');
    await expect(fileTasks(table).load('train')).rejects.toThrow(`${table}: cannot be read (ENOENT`);
  });

  it('a task that is not there', async () => {
    const set = await jsonl(await file(good)).load('train');
    expect(() => set.at(1)).toThrow('there is no task 1 among 1');
  });
});

/**
 * The Parquet files were made once, with pyarrow 26:
 *
 * head = 'Solve the following math problem step by step. The last line of your response should be of the form Answer:
 * $Answer '
 *            '(without quotes) where $Answer is the answer to the problem.\n\n'
 *     tail = '\n\nRemember to put your answer on its own line after "Answer:".'
 *     gsm8k = pa.table({'question': [f'How many are {i} and {i}?' for i in range(1, 6)],
 *                       'answer': [f'{i} + {i} = {2*i}\n#### {2*i}' for i in range(1, 6)],
 *                       'year': pa.array([2021] * 5, pa.int64()),
 *                       'added': pa.array([datetime(2021, 11, 1)] * 5, pa.timestamp('us'))})
 *     pq.write_table(gsm8k, 'gsm8k.parquet', compression='snappy', row_group_size=2)
 *     dapo = pa.table({'data_source': ['math_dapo'] * 2,
 * 'prompt': [[{'content': head + q + tail, 'role': 'user'}] for q in ('Find $x$ if\n\n$x = 34$.', 'Find $1 + 1$.')],
 *                      'ability': ['MATH'] * 2,
 *                      'reward_model': [{'ground_truth': a, 'style': 'rule-lighteval/MATH_v2'} for a in ('34', '2')],
 *                      'extra_info': [{'index': i} for i in ('9a9b6eb4', '1f2e3d4c')]})
 *     pq.write_table(dapo, 'dapo.parquet', compression='zstd')
 *     nq = pa.table({'id': ['train_0', 'train_1'], 'question': ['who wrote it?', 'when was it?'],
 *                    'golden_answers': [['Ann', 'Ann B.'], ['1987']]})
 *     pq.write_table(nq, 'nq.parquet', compression='gzip')
 *     numbers = pa.table({'question': ['a', 'b', 'c'],
 *         'answer': pa.array([Decimal('1.15'), Decimal('-12345678901234567.89'), None], pa.decimal128(38, 2)),
 *         'short': pa.array([Decimal('2.675'), Decimal('-0.010'), Decimal('3')], pa.decimal128(9, 3)),
 *         'single': pa.array([0.1, 16777216, 3.3], pa.float32()),
 *         'day': [date(2024, 2, 29), date(1969, 7, 20), None], 'names': [['x'], None, []]})
 *     pq.write_table(numbers, 'numbers.parquet', store_decimal_as_integer=True)
 *     twice = pa.Table.from_arrays([pa.array([x]) for x in ('a', '1', '2')], names=['question', 'answer', 'answer'])
 *     pq.write_table(twice, 'twice.parquet')
 */
const table = (name: string) => fixture(`tables/${name}`);
const tasksOf = async <Data = { question: string; answer: string }>(path: string, options: FileOptions = {}) =>
  all(await fileTasks<Data>(path, options).load('train'));

describe('a Parquet file', () => {
  it('has rows in groups, compressed, with numbers and dates', async () => {
    const tasks = await tasksOf<Record<string, unknown>>(table('gsm8k.parquet'));
    expect(tasks.map(({ id, data }) => [id, data.answer])).toEqual(
      [1, 2, 3, 4, 5].map((i) => [`gsm8k.parquet:${i}`, String(2 * i)]),
    );
    expect(tasks[4]?.data).toMatchObject({ year: 2021, added: '2021-11-01T00:00:00.000Z' });
  });

  it('is read in the layout of DAPO: a conversation, instructions around the problem, a nested answer', async () => {
    const tasks = await tasksOf(table('dapo.parquet'));
    expect(tasks.map(({ data }) => [data.question, data.answer])).toEqual([
      ['Find $x$ if\n\n$x = 34$.', '34'],
      ['Find $1 + 1$.', '2'],
    ]);
    expect(tasks[0]?.metadata).toEqual({ data_source: 'math_dapo' });
  });

  it('is read in the layout of NQ: a list of right answers', async () => {
    const tasks = await tasksOf(table('nq.parquet'));
    expect(tasks.map(({ id, data }) => [id, data.answer])).toEqual([
      ['train_0', ['Ann', 'Ann B.']],
      ['train_1', '1987'],
    ]);
  });

  it('has decimals, numbers of 32 bits and dates as they were written, and lists that are null', async () => {
    const tasks = await tasksOf<Record<string, unknown>>(table('numbers.parquet'), { answer: 'question' });
    expect(tasks.map(({ data: { question, answer, ...others } }) => others)).toEqual([
      { short: 2.675, single: 0.1, day: '2024-02-29', names: ['x'] },
      { short: -0.01, single: 16_777_216, day: '1969-07-20', names: null },
      { short: 3, single: 3.3, day: null, names: [] },
    ]);
    const answers = (await tasksOf(table('numbers.parquet'))).map(({ data }) => data.answer);
    expect(answers).toEqual(['1.15', '-12345678901234567.89']);
    const lists = await fileTasks(table('numbers.parquet'), { answer: 'names' }).load('train');
    expect(lists.warnings).toEqual([expect.stringContaining('row 2: 2 of 3 tasks left out')]);
  });

  it('is refused if two columns have one name', async () => {
    await expect(tasksOf(table('twice.parquet'))).rejects.toThrow('found "answer" twice');
  });

  it('is refused with file and row', async () => {
    const path = table('nq.parquet');
    const strict = z.object({ question: z.string(), answer: z.string() });
    await expect(fileTasks<z.output<typeof strict>>(path).load('train', strict)).rejects.toThrow(
      `${path}: row 1: does not fit the team's task: answer: `,
    );
    const mapped = fileTasks(path, { answer: 'reward_model.ground_truth' }).load('train');
    await expect(mapped).rejects.toThrow(
      `${path}: row 1: expected a string or number "reward_model.ground_truth", got {"id":"train_0"`,
    );
    const text = await file('no table', 'x.parquet');
    await expect(fileTasks(text).load('train')).rejects.toThrow(`${text}: cannot be read as Parquet (`);
  });
});

describe('a CSV file', () => {
  const lines = ['\ufeffquestion,answer,level,n.m', '"one, ""two""\nthree",1,easy,x', '', 'q,2,hard,y'];

  it('has a header, quoted fields with line breaks, and line numbers', async () => {
    const path = await file(lines.join('\r\n'), 'x.csv');
    const tasks = await tasksOf(path, { metadata: ['level', 'n.m'] });
    expect(tasks).toEqual([
      {
        id: 'x.csv:2',
        data: { question: 'one, "two"\nthree', answer: '1', level: 'easy', 'n.m': 'x' },
        metadata: { level: 'easy', 'n.m': 'x' },
      },
      { id: 'x.csv:5', data: expect.objectContaining({ answer: '2' }), metadata: { level: 'hard', 'n.m': 'y' } },
    ]);
  });

  it('may have lines that end with a carriage return alone, as Excel writes for old Macintoshes', async () => {
    const rows = await tasksOf(await file('question,answer\r"a, b",1\rc,2\r', 'x.csv'));
    expect(rows.map(({ data: { question, answer } }) => [question, answer])).toEqual([
      ['a, b', '1'],
      ['c', '2'],
    ]);
    const [inside] = await tasksOf(await file('question,answer\na\rb,1\n', 'x.csv'));
    expect(inside?.data.question).toBe('a\rb');
  });

  it('has tabs in .tsv, and any delimiter or name by option', async () => {
    expect((await tasksOf(await file('question\tanswer\na,b\t1', 'x.tsv')))[0]?.data.question).toBe('a,b');
    const options = { format: 'csv', delimiter: ';' } as const;
    expect((await tasksOf(await file('problem;solution\na,b;1', 'x.txt'), options))[0]?.data.question).toBe('a,b');
  });

  it.each([
    [
      'a row that is too long',
      'question,answer\na,1\nb,2,3\n',
      ':3: Invalid Record Length: columns length is 2, got 3',
    ],
    ['an open quote', 'question,answer\na,"1\n', ':2: Quote Not Closed'],
    ['a column twice', 'answer,answer\na,1\n', ':1: expected a name for each column, found "answer" twice'],
    ['no question', 'text,answer\na,1\n', ':2: expected a row with a string "question" or "problem", got {"text":"a"'],
    ['no rows', 'question,answer\n', ': expected at least one task, the file holds none'],
    ['no UTF-8', Uint8Array.of(0x61, 0xff, 0x0a), ': expected UTF-8 text'],
  ])('is refused for %s', async (_, content, message) => {
    const path = await file(content, 'x.csv');
    const error = await fileTasks(path)
      .load('train')
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(TaskError);
    expect((error as TaskError).message).toContain(path + message);
  });
});

describe('the layouts of public collections', () => {
  it.each<[string, object, string, unknown, object | undefined]>([
    ['GSM8K', { question: 'q', answer: 'a\n#### 72' }, 'q', '72', undefined],
    [
      'MATH',
      { problem: 'q', level: 'Level 5', type: 'Algebra', solution: 'so \\boxed{\\frac{1}{2}}' },
      'q',
      '\\frac{1}{2}',
      { level: 'Level 5', type: 'Algebra' },
    ],
    [
      'MATH-500',
      { problem: 'q', solution: 's', answer: '7', subject: 'Algebra', level: 2, unique_id: 'test/1.json' },
      'q',
      '7',
      { level: 2, subject: 'Algebra' },
    ],
    ['AIME of Maxwell-Jia', { ID: '2024-II-4', Problem: 'q', Solution: 's', Answer: 33 }, 'q', '33', undefined],
    ['AIME of math-ai', { id: 60, problem: 'q', solution: '\\boxed{204}', url: 'u' }, 'q', '204', undefined],
    ['AIME of opencompass', { question: 'q', answer: '70' }, 'q', '70', undefined],
    [
      "GSM8K as verl's preprocessing writes it",
      {
        data_source: 'openai/gsm8k',
        prompt: [{ role: 'user', content: 'q Let us think step by step.' }],
        reward_model: { style: 'rule', ground_truth: '72' },
        extra_info: { split: 'train', index: 0, answer: 'a\n#### 72', question: 'q' },
      },
      'q',
      '72',
      { data_source: 'openai/gsm8k' },
    ],
    [
      'DAPO, processed',
      { prompt: 'q', solution: '34', data_source: 'math_dapo', reward_model: { ground_truth: '34' } },
      'q',
      '34',
      { data_source: 'math_dapo' },
    ],
    ['NQ open', { question: 'q', answer: ['a', 'b'] }, 'q', ['a', 'b'], undefined],
    [
      'NQ of Search-R1, prompt only',
      {
        prompt: [
          { role: 'system', content: 's' },
          { role: 'user', content: 'q' },
        ],
        reward_model: { ground_truth: { target: ['a'] } },
      },
      'q',
      'a',
      undefined,
    ],
    [
      'HotpotQA',
      {
        _id: '5a',
        question: 'q',
        answer: 'yes',
        type: 'comparison',
        level: 'hard',
        supporting_facts: [['t', 0]],
        context: [['t', ['s']]],
      },
      'q',
      'yes',
      { level: 'hard', type: 'comparison' },
    ],
    [
      'HotpotQA of FlashRAG',
      { id: 'dev_0', question: 'q', golden_answers: ['yes'], metadata: { type: 'bridge', level: 'easy' } },
      'q',
      'yes',
      { level: 'easy', type: 'bridge' },
    ],
  ])('%s', async (_, row, question, answer, metadata) => {
    const [task] = await tasksOf<{ question: string; answer: unknown }>(await file(one(row), 'x.json'));
    expect([task?.data.question, task?.data.answer, task?.metadata]).toEqual([question, answer, metadata]);
  });

  it('leave out a task with an empty list of answers', async () => {
    const rows = [one({ question: 'q', golden_answers: [] }), one({ question: 'q', golden_answers: ['a'] })];
    expect(await tasksOf(await file(rows.join('\n')))).toHaveLength(1);
  });
});

describe('the format of a file', () => {
  it('follows its extension, also when another file is set', async () => {
    const path = await file('question,answer\na,1', 'y.CSV');
    const source = fileTasks('train.jsonl', { test: 0.5 });
    expect(source.settings).toMatchObject({ file: 'train.jsonl', format: null, delimiter: null, test: 0.5 });
    const changed = source.configure?.({ ...source.settings, file: path, test: null });
    expect((await changed?.load('train'))?.at(0)).toMatchObject({ id: 'y.CSV:2', data: { answer: '1' } });
    expect(() => fileTasks('x', { format: 'xml' } as never)).toThrow(/file: format: .*json/);
    expect(() => fileTasks('x', { delimiter: ', ' })).toThrow('file: delimiter: ');
  });
});

describe('a large file', () => {
  it('is cut into the same rows wherever its pieces end', () => {
    const values = fc.array(
      fc.jsonValue({ maxDepth: 2 }).map((value) => [value]),
      { maxLength: 5 },
    );
    const texts = fc.tuple(values, fc.boolean(), fc.constantFrom('\n', '\r\n', '\n\n ')).map(([rows, array, end]) => {
      const lines = rows.map((row) => JSON.stringify(row)).join(array ? `${end},` : end);
      return { rows, text: array ? ` [${lines}]${end}` : `\n{}${end}${lines}${end}`, array };
    });
    fc.assert(
      fc.property(texts, fc.array(fc.nat(40), { maxLength: 12 }), ({ rows, text, array }, cuts) => {
        const splitter = new JsonSplitter('x');
        const rowsInPieces = [];
        let at = 0;
        for (const size of cuts) {
          rowsInPieces.push(...splitter.push(text.slice(at, at + size)));
          at += size;
        }
        rowsInPieces.push(...splitter.push(text.slice(at)), ...splitter.end());
        expect(rowsInPieces).toEqual(jsonRows(text, 'x'));
        expect(rowsInPieces.map(({ value }) => value)).toEqual(
          JSON.parse(JSON.stringify(array ? rows : [{}, ...rows])),
        );
        for (const { place, value } of rowsInPieces)
          expect(text.split('\n')[place.line - 1]).toContain(JSON.stringify(value).slice(0, 1));
      }),
    );
  });

  it('is longer than a piece, and keeps the fields of the schema', async () => {
    const count = 3000;
    const rows = Array.from({ length: count }, (_, i) =>
      one({ question: `q${i} é`, answer: i, context: 'x'.repeat(1000) }),
    );
    const schema = z.object({ question: z.string(), answer: z.number() });
    for (const text of [rows.join('\n'), `[${rows.join(',\n')}]`]) {
      const set = await jsonl<z.output<typeof schema>>(await file(text)).load('train', schema);
      expect([set.size, set.at(count - 1)]).toEqual([
        count,
        { id: `train.jsonl:${count}`, data: { question: `q${count - 1} é`, answer: count - 1 } },
      ]);
    }
  });
});

describe('published task files', () => {
  const schema = z.object({ question: z.string().min(1), answer: z.string().min(1) });
  const math = fileURLToPath(new URL('../../../../../shared/data/math/', import.meta.url));

  it('GSM8K: all of its answers are numbers', async () => {
    const set = await jsonl(fixture('gsm8k/test.jsonl')).load('test', schema);
    expect(set.size).toBe(1319);
    expect(set.at(0).data.answer).toBe('18');
    expect(all(set).filter(({ data: { answer } }) => !/^-?[\d,.]+$/.test(answer))).toEqual([]);
  });

  it.skipIf(!existsSync(math)).each([
    ['train.json', 7470, '0'], // of its 7474 answers two are null and two empty
    ['math500.json', 500, '\\left( 3, \\frac{\\pi}{2} \\right)'],
  ])('MATH: %s (needs a copy in ../shared/data/math)', async (name, size, first) => {
    const set = await jsonl(join(math, name)).load('train', schema);
    expect(set.size).toBe(size);
    expect(set.at(0).data.answer).toBe(first);
  });
});
