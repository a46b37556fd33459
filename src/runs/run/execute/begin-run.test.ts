import type { TaskSet } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { listSource } from '../../../teams/tasks/list-source.js';
import { mix } from '../../../teams/tasks/mix.js';
import { dataOf } from './begin-run.js';

const rows = (count: number) => Array.from({ length: count }, (_, i) => ({ question: `${i}+1` }));
const test = await listSource(rows(2), 'test').load('test');
const origins = [{ name: 'rows.jsonl', files: { 'rows.jsonl': 'ab' } }];
const digests = (train: TaskSet) => dataOf({ train, test }, true).data;

describe("the digest of a program's tasks", () => {
  it('reads few of large tasks', () => {
    let asked = 0;
    const at = (index: number) => {
      asked++;
      return { id: `${index}`, data: new Uint8Array(2 ** 16) };
    };
    expect(digests({ name: 'own', size: Number.POSITIVE_INFINITY, at })).toHaveLength(2);
    expect(asked).toBeLessThan(16);
  });

  it('is of the parts of a mixture too, without those that files have', async () => {
    const [some, file] = [listSource(rows(3), 'some'), listSource(rows(4), 'file')];
    const ofFile = { ...file, load: async () => ({ ...(await file.load('train')), origins }) };
    const load = (source: typeof some) => mix({ source, ofFile }).load('train');
    const [one, same, other] = [await load(some), await load(some), await load(listSource(rows(5), 'some'))];
    expect(digests(one)?.map(({ name }) => name)).toEqual(['rows.jsonl', 'source + ofFile (train)', 'test (test)']);
    expect(digests(same)).toEqual(digests(one));
    expect(digests(other)).not.toEqual(digests(one));
    expect(digests(await mix({ ofFile }).load('train'))?.map(({ name }) => name)).toEqual([
      'rows.jsonl',
      'test (test)',
    ]);
  });
});
