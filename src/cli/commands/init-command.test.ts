import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { drmas } from '../../../test/support/command-line.js';
import { temporaryRoot } from '../../../test/support/tiny-run.js';

const repository = new URL('../../../', import.meta.url).pathname;
const root = temporaryRoot();
const project = join(root, 'My Team');
let result: Awaited<ReturnType<typeof drmas>>;
beforeAll(async () => {
  result = await drmas(['init', project]);
  await symlink(join(repository, 'node_modules'), join(project, 'node_modules')); // as `npm install` would
});

describe('init', () => {
  it('writes a project and says what to do next', async () => {
    expect(result).toMatchObject({ code: 0, err: '' });
    expect(result.out).toMatch(
      /next\n {2}cd '.*My Team'\n {2}npm install\n {2}npm run plan .*\n {2}npm run train .*\n/,
    );
    const names = (await readdir(project)).filter((name) => name !== 'node_modules');
    const expected = ['.gitignore', 'README.md', 'package.json', 'tasks', 'team.test.ts', 'team.ts', 'tsconfig.json'];
    expect(names.sort()).toEqual(expected);
    expect(await readFile(join(project, 'README.md'), 'utf8')).toMatch(/^# my-team\n/);
    const manifest = JSON.parse(await readFile(join(project, 'package.json'), 'utf8'));
    expect(manifest).toMatchObject({ name: 'my-team', private: true, type: 'module' });
    const place = manifest.dependencies.drmas.replace(/^file:/, '');
    const linked = JSON.parse(await readFile(join(project, place, 'package.json'), 'utf8'));
    expect(linked.name).toBe('drmas');
    const { dependencies, devDependencies } = linked;
    expect(manifest.dependencies.zod).toBe(dependencies.zod);
    expect(manifest.devDependencies).toEqual({
      '@types/node': devDependencies['@types/node'],
      tsx: dependencies.tsx,
      typescript: devDependencies.typescript,
    });
  });

  it('trains at once', async () => {
    const settings = ['warmStart.steps=2', 'training.steps=1', 'training.tasksPerStep=2', 'evaluation.samples=1'];
    const sets = settings.flatMap((setting) => ['--set', setting]);
    const run = join(root, 'run');
    const { code, out, err } = await drmas([
      'train',
      join(project, 'team.ts'),
      '--run',
      run,
      '--threads',
      '1',
      ...sets,
    ]);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(/team +larger-number: answerer, checker/);
    expect(out).toMatch(/step 1\/1/);
  });

  it('leaves what is there alone', async () => {
    const { code, err } = await drmas(['init', project]);
    expect({ code, err }).toEqual({
      code: 2,
      err: `error: ${join(project, 'team.ts')} exists; drmas overwrites nothing\n`,
    });
    const file = join(root, 'file');
    await writeFile(file, 'mine');
    expect(await drmas(['init', file])).toMatchObject({ code: 2 });
    expect(await readFile(file, 'utf8')).toBe('mine');
  });

  it('adds itself to a project, where nothing that is there changes', async () => {
    const there = join(root, `Zoë's "work"`);
    await mkdir(there);
    const before = {
      name: 'work',
      scripts: { test: 'mine', lint: 'mine' },
      dependencies: { zod: '^4.0.0' },
      extra: [1],
    };
    await writeFile(join(there, 'package.json'), JSON.stringify(before, null, '\t'));
    await writeFile(join(there, 'README.md'), 'mine');
    const { code, out } = await drmas(['init', there]);
    expect(code).toBe(0);
    expect(out).toContain(`cd '${root}/Zoë'\\''s "work"'`);
    expect(out).toMatch(/unchanged: README.md/);
    expect(await readFile(join(there, 'README.md'), 'utf8')).toBe('mine');
    const text = await readFile(join(there, 'package.json'), 'utf8');
    const after = JSON.parse(text);
    expect(text).toContain('\n\t"name"');
    expect(after).toMatchObject(before);
    // Without "type": "module" the files are modules by their names.
    expect(after.scripts).toMatchObject({
      'drmas:test': 'node --import tsx --test team.test.mts',
      train: 'drmas train team.mts',
    });
    expect(await readFile(join(there, 'team.test.mts'), 'utf8')).toContain("from './team.mjs'");
    const loaded = await drmas(['recipes', 'show', join(there, 'team.mts')]);
    expect(loaded.code).toBe(0);
    expect(await drmas(['init', there])).toMatchObject({ code: 2 });
    expect(await readFile(join(there, 'package.json'), 'utf8')).toBe(text);
  });

  it('refuses a package.json that it cannot read, and writes nothing', async () => {
    const there = join(root, 'broken');
    await mkdir(there);
    await writeFile(join(there, 'package.json'), '{');
    expect(await drmas(['init', there])).toMatchObject({ code: 2, err: expect.stringContaining('cannot read') });
    expect(await readdir(there)).toEqual(['package.json']);
  });

  it('holds out no task that is trained on', async () => {
    const questions = async (split: string) =>
      (await readFile(join(project, 'tasks', `${split}.jsonl`), 'utf8'))
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
    const [train, test] = [await questions('train'), await questions('test')];
    expect(new Set([...train, ...test].map(({ question }) => question)).size).toBe(90);
    for (const { question, answer } of [...train, ...test])
      expect(Number(answer)).toBe(Math.max(...question.split(' or ').map(Number)));
  });
});
