import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
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
    ["Let's think step by step. Find $x$.", "Let's think step by step. Find $x$."],
  ])('of DAPO is read without its instruction: %j', async (question, expected) => {
    const set = await jsonl(await file(one({ question, answer: '1' }))).load('train');
    expect(set.at(0).data).toMatchObject({ question: expected });
  });
});
