import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TaskError } from '@drmas/engine/errors';
import { fittedSet, type TaskSet } from '@drmas/engine/nouns';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { benchmarks } from '../benchmarks.js';
import { mix } from '../mix.js';

import { jsonl } from './file-source.js';

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tasks-'));
});
afterAll(() => rm(directory, { recursive: true }));

const file = async (content: string) => {
  const path = join(directory, 'train.jsonl');
  await writeFile(path, content);
  return path;
};
const one = (fields: object) => JSON.stringify(fields);

describe('files that join collections', () => {
  const row = (id: string, data_source?: string) => one({ id, question: `${id}?`, answer: '1', data_source });

  it('give a repeated id the name of its collection', async () => {
    const rows = [row('train_0', 'nq'), row('train_1', 'nq'), row('train_0', 'hotpotqa'), row('train_1', 'hotpotqa')];
    const set = await jsonl(await file(rows.join('\n'))).load('train');
    expect(Array.from({ length: set.size }, (_, i) => set.at(i).id)).toEqual([
      'train_0',
      'train_1',
      'hotpotqa/train_0',
      'hotpotqa/train_1',
    ]);
  });

  it('are refused if an id repeats within a collection', async () => {
    const first = await file([row('train_0', 'nq'), row('train_0', 'nq')].join('\n'));
    await expect(jsonl(first).load('train')).rejects.toThrow(":2: the id 'train_0' is already used in line 1");
    const second = await file([row('train_0', 'nq'), row('train_0', 'b'), row('train_0', 'b')].join('\n'));
    await expect(jsonl(second).load('train')).rejects.toThrow(":3: the id 'b/train_0' is already used in line 2");
  });
});

describe('a question', () => {
  it.each([
    ["Find $x$. Let's think step by step and output the final answer within \\boxed{}.", 'Find $x$.'],
    ['Find $x$.\nLet\u2019s think step by step and output the final answer within \\boxed{}', 'Find $x$.'],
    // The pattern of the original's preprocessing: its spellings, line breaks in the text, any case.
    ['Find $x$.\\n\\nLets think step by step  and output the final answer within\\boxed{}.', 'Find $x$.'],
    ["Find $x$. let's think step by\nstep and output the final answer within \\boxed{}.", 'Find $x$.'],
    ["Let's think step by step. Find $x$.", "Let's think step by step. Find $x$."],
  ])('of DAPO is read without its instruction: %j', async (question, expected) => {
    const set = await jsonl(await file(one({ question, answer: '1' }))).load('train');
    expect(set.at(0).data).toMatchObject({ question: expected });
  });
});

describe('a limit of tokens', () => {
  const rows = ['a', 'bbbb', 'ccccccccc', 'dd'].map((question) => one({ question, answer: '1' })).join('\n');
  const letters = (question: string) => question.length;
  const idsOf = (set: TaskSet) => Array.from({ length: set.size }, (_, i) => set.at(i).id);

  it('leaves out tasks whose question is longer, and counts them', async () => {
    const path = await file(rows);
    const set = await jsonl(path, { maxQuestionTokens: 4 }).load('train');
    expect(set.size).toBe(4);
    const fitted = fittedSet(set, letters);
    expect(idsOf(fitted)).toEqual(['train.jsonl:1', 'train.jsonl:2', 'train.jsonl:4']);
    expect(fitted.warnings).toEqual([`${path}: 1 of 4 tasks left out, their question has more than 4 tokens`]);
    const all = fittedSet(await jsonl(path, { maxQuestionTokens: 9 }).load('train'), letters);
    expect([all.size, all.warnings]).toEqual([4, []]);
    const without = await jsonl(path).load('train');
    expect(fittedSet(without, letters)).toBe(without);
  });

  it('holds within benchmarks and mixtures', async () => {
    const limited = jsonl(await file(rows), { maxQuestionTokens: 2 });
    const joined = fittedSet(await benchmarks({ short: limited, all: jsonl(await file(rows)) }).load('test'), letters);
    expect(idsOf(joined).map((id) => id.replace('train.jsonl:', ''))).toEqual([
      'short/1',
      'short/4',
      'all/1',
      'all/2',
      'all/3',
      'all/4',
    ]);
    expect(joined.warnings).toHaveLength(1);
    const mixture = fittedSet(await mix({ short: limited }).load('train'), letters);
    const drawn = new Set(Array.from({ length: 50 }, (_, i) => mixture.at(i).id));
    expect([...drawn].sort()).toEqual(['short/train.jsonl:1', 'short/train.jsonl:4']);
  });

  it('refuses a file that keeps no task, a row without a question, and a limit below 1', async () => {
    const path = await file(rows);
    const set = await jsonl(path, { maxQuestionTokens: 1, test: 0.5 }).load('train');
    const error = (() => {
      try {
        return fittedSet(set, () => 2);
      } catch (thrown) {
        return thrown;
      }
    })();
    expect(error).toBeInstanceOf(TaskError);
    expect((error as Error).message).toContain('tasks have a question of more than 1 tokens');
    const text = z.object({ text: z.string() });
    const texts = jsonl<{ text: string }>(await file(one({ text: 'no question' })), { maxQuestionTokens: 4 });
    await expect(texts.load('train', text)).rejects.toThrow(':1: maxQuestionTokens needs a question that is a text');
    expect(() => jsonl('x', { maxQuestionTokens: 0 })).toThrow('maxQuestionTokens');
    expect(() => jsonl('x', { origin: 'aime_2024' })).toThrow('expected a dataset and the start of its file');
  });
});

it('a missing file of a known dataset is refused with the dataset and the command', async () => {
  const path = join(directory, 'missing.jsonl');
  await expect(jsonl(path, { origin: 'some/dataset:train' }).load('train')).rejects.toThrow(
    `${path}: cannot be read, because it is not there. It is some/dataset:train of the Hugging Face hub`,
  );
});

describe('a row that does not fit', () => {
  it('names the fields of the team, not the usual ones, if a row does not fit a schema of its own', async () => {
    const ticket = z.object({ customer_text: z.string(), gold_queue: z.enum(['refund', 'shipping']) });
    const refused = async (row: Record<string, unknown>) => {
      const path = await file(one(row));
      return jsonl<z.output<typeof ticket>>(path)
        .load('train', ticket)
        .then(
          () => '',
          (error: Error) => error.message,
        );
    };
    const wrong = await refused({ customer_text: 'x', gold_queue: 'nope' });
    expect(wrong).toMatch(/train\.jsonl:1: does not fit the team's task: gold_queue: .*"refund"\|"shipping"/);
    const missing = await refused({ gold_queue: 'refund' });
    expect(missing).toMatch(/customer_text: .*, got \{"gold_queue":"refund"\}$/);
    for (const text of [wrong, missing]) expect(text).not.toMatch(/"question"|"problem"/);
  });
});
