import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { drmas, plainRecipe } from '../../../test/support/command-line.js';
import { temporaryRoot } from '../../../test/support/tiny-run.js';
import { jsonl } from '../../teams/tasks/files/file-source.js';

const root = temporaryRoot();
const rows = Array.from({ length: 30 }, (_, i) => ({ question: `What is ${i}?`, answer: `${i}` }));

describe('drmas tasks', () => {
  it('lists the held-out tasks, the same as evaluations play, and with --split the others', async () => {
    const file = join(root, 'tasks.jsonl');
    await writeFile(file, rows.map((row) => JSON.stringify(row)).join('\n'));
    const recipe = ['tasks', 'gsm8k', '--set', `tasks.train.file=${file}`, '--set', `tasks.test.file=${file}`];
    const shared = [...recipe, '--set', 'tasks.train.test=0.3', '--set', 'tasks.test.test=0.3'];
    const source = jsonl(file, { test: 0.3 });
    for (const split of ['test', 'train'] as const) {
      const { code, out, err } = await drmas([...shared, '--split', split, '--json']);
      expect({ code, err }).toEqual({ code: 0, err: '' });
      const listed = out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).data.question);
      const set = await source.load(split);
      expect(listed).toEqual(
        Array.from({ length: set.size }, (_, i) => (set.at(i).data as { question: string }).question),
      );
      const people = await drmas([...shared, '--split', split, '--count', '2']);
      const other = 30 - set.size;
      expect(people.out).toMatch(
        split === 'test'
          ? new RegExp(`: ${set.size} tasks are held out for evaluations, ${other} are for training\n`)
          : new RegExp(`: ${set.size} tasks are for training, ${other} are held out for evaluations\n`),
      );
      expect(people.out.trimEnd().split('\n')).toHaveLength(4); // a heading, two tasks, a line about the rest
    }
  });

  it('needs no demonstrations: people look what is held out before they write any', async () => {
    const tasks = join(root, 'orders.jsonl');
    await writeFile(tasks, rows.map((row) => JSON.stringify(row)).join('\n'));
    const recipe = join(root, 'recipe.mjs');
    const source = (path: string) => pathToFileURL(join(import.meta.dirname, '../..', path)).href;
    const imports = `import { jsonl } from '${source('teams/tasks/files/file-source.ts')}';
import { withDemonstrations } from '${source('teams/tasks/files/demonstrations.ts')}';`;
    const held = `tasks: withDemonstrations(jsonl('${tasks}', { test: 0.3 }), '${join(root, 'missing.jsonl')}'),`;
    await writeFile(recipe, imports + plainRecipe.replace(/tasks: .*/, held));
    const { code, out, err } = await drmas(['tasks', recipe]);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(/tasks are held out for evaluations/);
  });

  it('shows the first of a generated family', async () => {
    const { code, out } = await drmas(['tasks', 'math']);
    expect(code).toBe(0);
    expect(out).toMatch(/endlessly many tasks are held out/);
    expect(out.split('\n').length).toBeGreaterThan(20);
  });
});
