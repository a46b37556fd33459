import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Episode } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { temporaryRoot } from '../../../../test/support/tiny-run.js';
import { DemonstrationFile } from './demonstration-file.js';

const root = temporaryRoot();

/** An episode of one turn that answers `text`. */
const saying = (text: string, success = 1) =>
  ({ turns: [{ agent: 'a', valid: true, messages: [], text }], score: { success } }) as unknown as Episode;

const answersIn = (path: string) =>
  readFileSync(path, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line).messages[0].content);

const fileNamed = async (name: string) => {
  const out = join(root, 'new folder', name);
  return { out, file: await DemonstrationFile.create({ out, agents: ['a'], minScore: 1 }) };
};

describe('DemonstrationFile', () => {
  it('writes tasks in their order, whichever ends first', async () => {
    const { file, out } = await fileNamed('order.jsonl');
    file.add(2, [saying('third')]);
    expect(answersIn(out)).toEqual([]);
    file.add(0, [saying('first é')]);
    expect(answersIn(out)).toEqual(['first é']);
    file.add(1, []); // left out
    expect(answersIn(out)).toEqual(['first é', 'third']);
    file.add(5, [saying('sixth')]);
    file.add(4, [saying('fifth'), saying('poor', 0)]);
    file.finish(); // the fourth was not played
    await file.close();
    expect(answersIn(out)).toEqual(['first é', 'third', 'fifth', 'sixth']);
    expect(file).toMatchObject({ demonstrations: 4, kept: 4, agents: { a: 4 } });
  });

  it('leaves no empty file, and takes no file that exists', async () => {
    const { file, out } = await fileNamed('empty.jsonl');
    file.add(0, [saying('poor', 0)]);
    await file.close();
    expect(existsSync(out)).toBe(false);
    writeFileSync(out, 'mine');
    await expect(fileNamed('empty.jsonl')).rejects.toThrow(/empty\.jsonl cannot be written: EEXIST/);
    expect(readFileSync(out, 'utf8')).toBe('mine');
  });

  it('leaves what another program has written, and counts only its own', async () => {
    const { file, out } = await fileNamed('shared.jsonl');
    file.add(0, [saying('first')]);
    const both = `${readFileSync(out, 'utf8')}{"messages":[{"content":"theirs"}]}\n`;
    writeFileSync(out, both);
    expect(() => file.add(1, [saying('second')])).toThrow(/shared\.jsonl cannot be written: .*another program/);
    expect(readFileSync(out, 'utf8')).toBe(both);
    expect(file.demonstrations).toBe(1);
    const second = await fileNamed('theirs.jsonl');
    writeFileSync(second.out, 'theirs');
    expect(() => second.file.add(0, [saying('first')])).toThrow(/another program/);
    await second.file.close();
    expect(readFileSync(second.out, 'utf8')).toBe('theirs');
  });
});
