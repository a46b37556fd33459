import { appendFile, truncate, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryRoot } from '../../../../test/support/tiny-run.js';
import { fileRows, textChunks } from './file-rows.js';

const root = temporaryRoot();
const LINES = '{"a": 1}\n'.repeat(400_000); // several chunks

/** The characters of a file, changed after its first chunk. */
async function readDuring(name: string, change: (file: string) => Promise<void>): Promise<number> {
  const file = join(root, name);
  await writeFile(file, LINES);
  let length = 0;
  for await (const text of textChunks(file)) {
    if (length === 0) await change(file);
    length += text.length;
  }
  return length;
}

describe('a file that changes while it is read', () => {
  it.each<[string, (file: string) => Promise<void>]>([
    ['cut', (file) => truncate(file, 2_000_000)],
    ['emptied', (file) => truncate(file)],
    ['written anew', (file) => writeFile(file, LINES.replaceAll('1', '2'))],
  ])('is refused if it is %s', async (name, change) => {
    await expect(readDuring(name, change)).rejects.toThrow(/has changed while it was read/);
  });

  it('may grow, as a log does, and vanish', async () => {
    const grown = await readDuring('grown', (file) => appendFile(file, '{"a": 3}\n'));
    expect(grown).toBeGreaterThanOrEqual(LINES.length);
    expect(await readDuring('gone', unlink)).toBe(LINES.length);
  });
});

describe('the columns of a CSV file', () => {
  const rowsOf = async (content: string, name: string, delimiter?: string) => {
    const file = join(root, name);
    await writeFile(file, content);
    const rows: unknown[] = [];
    for await (const { value } of fileRows(file, { delimiter })) rows.push(value);
    return rows;
  };

  it.each([
    ['\uFEFFID;Frage;"Level (1,3)"\n1;"3 or 7";7\n', 'semicolons.csv', '";"'],
    ['question\tanswer\n3 or 7\t7\n', 'tabs.csv', '"\\t"'],
    ['question,answer\n3 or 7,7\n', 'commas.tsv', '","'],
  ])('with another delimiter are refused by its name: %j', async (content, name, found) => {
    await expect(rowsOf(content, name)).rejects.toThrow(`${name}:1: expected `);
    await expect(rowsOf(content, name)).rejects.toThrow(`found ${found}: save the file with `);
    await expect(rowsOf(content, name)).rejects.toThrow(`set delimiter: ${found} for its tasks`);
  });

  it('may have it in a quoted name, and be one', async () => {
    expect(await rowsOf('"a;b"\nx\n', 'quoted.csv')).toEqual([{ 'a;b': 'x' }]);
    expect(await rowsOf('a\nx;y\n', 'one.csv')).toEqual([{ a: 'x;y' }]);
    expect(await rowsOf('a; b\nx\n', 'chosen.csv', ',')).toEqual([{ 'a; b': 'x' }]);
    expect(await rowsOf('a, b\nx, y\n', 'chosen.tsv', '\t')).toEqual([{ 'a, b': 'x, y' }]);
  });
});
