import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TaskError } from '@drmas/engine/errors';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bm25Retriever } from './bm25.js';
import { passageOf, readCorpus } from './corpus.js';

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'corpus-'));
});
afterAll(() => rm(directory, { recursive: true }));

const file = async (...rows: (object | string)[]) => {
  const path = join(directory, 'corpus.jsonl');
  await writeFile(path, rows.map((row) => (typeof row === 'string' ? row : JSON.stringify(row))).join('\n'));
  return path;
};

describe('a corpus', () => {
  it('is read with titles and texts under their usual names', async () => {
    const rows = [
      { title: 'A', text: 'one' },
      { text: 'two' },
      { contents: '"B"\nthree\nfour' },
      { id: 1, contents: 'five' },
    ];
    expect(await readCorpus(await file(...rows))).toEqual([
      { title: 'A', text: 'one' },
      { text: 'two' },
      { title: 'B', text: 'three\nfour' },
      { text: 'five' },
    ]);
  });

  it('is read with custom field names', async () => {
    const rows = [{ page: { name: 'A', body: 'one' }, text: 'not this' }];
    const fields = { title: 'page.name', text: 'page.body' };
    expect(await readCorpus(await file(...rows), fields)).toEqual([{ title: 'A', text: 'one' }]);
  });

  it('names file and line of an invalid passage', async () => {
    const path = await file({ text: 'one' }, { title: 'two' });
    await expect(readCorpus(path)).rejects.toThrow(TaskError);
    await expect(readCorpus(path)).rejects.toThrow(
      `${path}:2: expected a JSON object with a string "text" or "contents"`,
    );
    await expect(readCorpus(path, { text: 'body' })).rejects.toThrow(
      `${path}:1: expected a JSON object with a string "body"`,
    );
    await expect(readCorpus(await file('{'))).rejects.toThrow(`${path}:1: expected JSON`);
    await expect(readCorpus(await file(''))).rejects.toThrow('the file holds none');
    await expect(readCorpus(join(directory, 'none'))).rejects.toThrow('cannot be read');
  });

  it('may quote a title or not', () => {
    expect(passageOf('"A "b" c"\nd')).toEqual({ title: 'A "b" c', text: 'd' });
    expect(passageOf('A\nd')).toEqual({ title: 'A', text: 'd' });
  });
});

const hotpot = join(import.meta.dirname, '../../../../test/fixtures/hotpotqa');

describe('HotpotQA', () => {
  it('has its gold passages among the best for most questions about its beginning', async () => {
    const retriever = bm25Retriever(await readCorpus(join(hotpot, 'corpus.jsonl')));
    const questions = (await readFile(join(hotpot, 'questions.jsonl'), 'utf8'))
      .trim()
      .split('\n')
      .slice(0, 20)
      .map((line) => JSON.parse(line) as { question: string; goldTitles: string[] });
    let hits = 0;
    for (const { question, goldTitles } of questions) {
      const passages = await retriever.search(question, 5, new AbortController().signal);
      expect(passages.length).toBeLessThanOrEqual(5);
      if (passages.some(({ title }) => goldTitles.includes(title ?? ''))) hits++;
    }
    expect(hits).toBeGreaterThan(16);
  });
});
