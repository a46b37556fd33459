import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ggufOf } from '@drmas/engine/internal/model/formats/gguf/gguf-model';
import { openModelDirectory } from '@drmas/engine/internal/model/formats/hugging-face-directory';
import { nodeFiles } from '@drmas/engine/platform';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { goldenModelFiles } from '../../../test/goldens.js';
import { drmas } from '../../../test/support/command-line.js';
import { memoryFiles } from '../../../test/support/memory-files.js';
import { temporaryRoot } from '../../../test/support/tiny-run.js';
import { exampleNames, exampleOf } from '../init/examples.js';

const repository = fileURLToPath(new URL('../../../', import.meta.url));
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
      tsx: devDependencies.tsx,
      typescript: devDependencies.typescript,
    });
  });

  it('trains at once', { tags: 'verify' }, async () => {
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

  it('takes a link that leads nowhere for a file, and keeps it', async () => {
    const there = join(root, 'linked');
    await mkdir(there);
    await symlink(join(root, 'nowhere', 'team.ts'), join(there, 'team.ts'));
    expect(await drmas(['init', there])).toMatchObject({ code: 2, err: expect.stringContaining('team.ts exists') });
    expect(await readdir(there)).toEqual(['team.ts']);
  });

  it.each([1, 2, 3, 4, 5])('takes its files back if the disk is full at file %i, and then begins anew', async (at) => {
    const there = join(root, `full-${at}`);
    await mkdir(join(there, 'tasks'), { recursive: true });
    const before = ['README.md', 'package.json', 'tasks', 'tasks/mine.jsonl'];
    for (const name of before.filter((name) => name !== 'tasks')) await writeFile(join(there, name), '{}');
    const { write } = nodeFiles;
    let writes = 0;
    const full = vi.spyOn(nodeFiles, 'write').mockImplementation(async (path, content) => {
      if (++writes < at) return write(path, content);
      await write(path, '');
      throw new Error('ENOSPC: no space left on device');
    });
    try {
      expect(await drmas(['init', there])).toMatchObject({
        code: 2,
        err: expect.stringMatching(/cannot write.*ENOSPC/),
      });
    } finally {
      full.mockRestore();
    }
    expect((await readdir(there, { recursive: true })).sort()).toEqual(before);
    expect(await readFile(join(there, 'package.json'), 'utf8')).toBe('{}');
    expect((await drmas(['init', there])).code).toBe(0);
  });

  // `mkdir` of Node with `recursive` never ends there.
  it.runIf(process.platform === 'linux')('refuses a directory that cannot be made', async () => {
    const { code, err } = await drmas(['init', '/proc/none/of/this']);
    expect({ code, err }).toEqual({ code: 2, err: expect.stringMatching(/^error: cannot write .*ENOENT/) });
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

  it('keeps the line ends of a package.json of Windows', async () => {
    const there = join(root, 'windows');
    await mkdir(there);
    await writeFile(join(there, 'package.json'), '\ufeff{\r\n  "name": "work"\r\n}\r\n');
    expect(await drmas(['init', there])).toMatchObject({ code: 0 });
    const lines = (await readFile(join(there, 'package.json'), 'utf8')).split('\n');
    expect(lines.every((line, i) => line.endsWith('\r') || i === lines.length - 1)).toBe(true);
    expect(lines[1]).toBe('  "name": "work",\r');
  });

  it('says which script it leaves as it is, and calls its own by its name', async () => {
    const there = join(root, 'taken');
    await mkdir(there);
    const scripts = { train: 'mine', 'drmas:train': 'mine too', test: 'mine', report: 'drmas report' };
    await writeFile(join(there, 'package.json'), JSON.stringify({ type: 'module', scripts }));
    const { code, out } = await drmas(['init', there]);
    expect(code).toBe(0);
    expect(out).toContain(
      "package.json: the script train stays as it is; drmas's is drmas:train-2\n" +
        "package.json: the script test stays as it is; drmas's is drmas:test\n",
    );
    expect(out).not.toContain('the script report');
    const [train, test] = ['drmas:train-2', 'drmas:test'].map((name) => `npm run ${name} `);
    expect(out).toContain(`  ${train}`);
    expect(JSON.parse(await readFile(join(there, 'package.json'), 'utf8')).scripts).toEqual({
      ...scripts,
      plan: 'drmas plan team.ts --play',
      watch: 'drmas watch',
      check: 'tsc',
      'drmas:train-2': 'drmas train team.ts',
      'drmas:test': 'node --import tsx --test team.test.ts',
    });
    const readme = await readFile(join(there, 'README.md'), 'utf8');
    for (const command of [train, test]) expect(readme).toContain(`\n${command}`);
    expect(readme).not.toMatch(/^npm (run train|test)\b/m);
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

describe('init --model', () => {
  const model = join(root, "the model's.gguf");
  beforeAll(async () => {
    const {
      model: described,
      tokenizer,
      tensors,
    } = await openModelDirectory(memoryFiles(goldenModelFiles('smollm3-mini')), 'm');
    await writeFile(model, ggufOf({ config: described.config, tokenizer, name: 'mini' }, tensors.values()));
  });

  it('writes a project that trains adapters on the model', async () => {
    const there = join(root, 'on-model');
    const { code, out, err } = await drmas(['init', there, '--model', relative('.', model)]);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toContain('npm run train    minutes to hours');
    await symlink(join(repository, 'node_modules'), join(there, 'node_modules'));
    const team = await readFile(join(there, 'team.ts'), 'utf8');
    expect(team).toContain(`lora(checkpoint('../the model\\'s.gguf'), { rank: 16 })`);
    const written = [team, await readFile(join(there, 'README.md'), 'utf8')].join();
    expect(written).not.toContain('{{');
    const plan = JSON.parse((await drmas(['plan', join(there, 'team.ts'), '--json'])).out);
    expect(plan).toMatchObject({ type: 'plan' });
    const run = join(root, 'run-on-model');
    const settings = ['training.steps=1', 'training.tasksPerStep=1', 'training.groupSize=2', 'evaluation.tasks=1'];
    const sets = settings.flatMap((setting) => ['--set', setting]);
    expect(await drmas(['train', join(there, 'team.ts'), '--run', run, '--threads', '1', ...sets])).toMatchObject({
      code: 0,
      err: '',
    });
  });

  it('takes the name of a model on a hub without asking the hub', async () => {
    const there = join(root, 'on-hub');
    const { code, out } = await drmas(['init', there, '--model', 'some-org/a-model']);
    expect(code).toBe(0);
    expect(out).toContain('some-org/a-model of the hub, which drmas downloads when a run begins');
    expect(await readFile(join(there, 'team.ts'), 'utf8')).toContain("checkpoint('some-org/a-model')");
  });

  it.each<[string, string, () => string, string]>([
    ['a file that is missing', 'none', () => './nowhere.gguf', 'expected a directory with config.json or a GGUF file'],
    ['one that looks like a name', 'none', () => 'models/nowhere.gguf', 'models/nowhere.gguf: there is no such file'],
    ['a family that it cannot compute', 'none', () => join(root, 'gemma'), 'only the text models of Gemma 3'],
    ['a file that is no model', 'none', () => join(repository, 'README.md'), 'is a file that is no GGUF file'],
  ])('refuses %s before it writes anything', async (_, name, path, message) => {
    await mkdir(join(root, 'gemma'), { recursive: true });
    const gemma = { ...JSON.parse(Buffer.from(goldenModelFiles('llama-mini').get('m/config.json') ?? '').toString()) };
    await writeFile(
      join(root, 'gemma', 'config.json'),
      JSON.stringify({ ...gemma, architectures: ['Gemma2ForCausalLM'] }),
    );
    const there = join(root, name);
    const { code, err } = await drmas(['init', there, '--model', path()]);
    expect(code).toBe(2);
    expect(err).toContain(message);
    expect(await readdir(root)).not.toContain(name);
  });

  it('belongs to no example', async () => {
    const { code, err } = await drmas(['init', join(root, 'both'), '--example', 'judge', '--model', model]);
    expect({ code, err }).toMatchObject({ code: 2, err: expect.stringContaining('--example stands alone') });
  });
});

describe('init --example', () => {
  /** Writes an example into a folder of its own, and links what `npm install` would install. */
  async function copied(name: string, manifest?: object) {
    const there = join(root, `${manifest === undefined ? 'esm' : 'cjs'}-${name}`);
    await mkdir(there);
    if (manifest !== undefined) await writeFile(join(there, 'package.json'), JSON.stringify(manifest));
    const done = await drmas(['init', there, '--example', name]);
    expect(done).toMatchObject({ code: 0, err: '' });
    await symlink(join(repository, 'node_modules'), join(there, 'node_modules'));
    return { there, out: done.out };
  }

  const names = exampleNames();
  it.each(names)('%s: its recipes load from a folder of their own', async (name) => {
    const { there, out } = await copied(name);
    const { recipes, files, packages } = exampleOf(name, 'ts');
    const { exampleDependencies } = JSON.parse(await readFile(join(repository, 'package.json'), 'utf8'));
    const isInstalled = !packages.some((each) => exampleDependencies[each] !== undefined);
    for (const recipe of isInstalled ? recipes : []) {
      const shown = await drmas(['recipes', 'show', join(there, recipe)]);
      expect({ recipe, code: shown.code, err: shown.err }).toEqual({ recipe, code: 0, err: '' });
    }
    for (const { name: file, text } of files) expect(text, file).not.toMatch(/from '\.\.\//);
    const { scripts, dependencies } = JSON.parse(await readFile(join(there, 'package.json'), 'utf8'));
    expect(Object.keys(scripts)).toContain(recipes.length === 1 ? 'train' : 'check');
    expect(Object.keys(dependencies)).toEqual(expect.arrayContaining(['drmas', 'zod', ...packages]));
    expect(out).toMatch(recipes.length === 0 ? /npm run start/ : /npm run train|npx drmas train /);
  });

  it('takes the files of other examples along, and works without "type": "module"', async () => {
    const { there } = await copied('gateway', { name: 'work' });
    const files = (await readdir(there)).filter((name) => name !== 'node_modules').sort();
    expect(files).toEqual(
      ['.gitignore', 'agent.sh', 'orders.mts', 'package.json', 'prices.mts', 'recipe.mts', 'tsconfig.json'].sort(),
    );
    expect((await drmas(['recipes', 'show', join(there, 'recipe.mts')])).code).toBe(0);
    const packages = JSON.parse(await readFile(join(root, 'esm-mcp', 'package.json'), 'utf8')).dependencies;
    expect(Object.keys(packages)).toEqual(
      expect.arrayContaining(['@modelcontextprotocol/client', '@modelcontextprotocol/server']),
    );
  });

  it('trains, and overwrites nothing', { tags: 'verify' }, async () => {
    const sets = ['warmStart.steps=2', 'training.steps=1', 'evaluation.samples=1'].flatMap((one) => ['--set', one]);
    const { there } = await copied('own-team', { type: 'module' });
    const trained = await drmas(['train', join(there, 'own-team.ts'), '--run', join(there, 'run'), ...sets]);
    expect(trained).toMatchObject({ code: 0, err: '' });
    expect(await drmas(['init', there, '--example', 'own-team'])).toMatchObject({
      code: 2,
      err: `error: ${join(there, 'own-team.ts')} exists; drmas overwrites nothing\n`,
    });
  });

  it.skipIf(process.platform === 'win32').each(['a b', 'a#b', '100%', 'a%3Fb', 'é', "it's", 'a?b', 'a\\b', 'a?b/c'])(
    'writes a project into %j if its recipe can be loaded from there, else nothing',
    async (name) => {
      const [sign] = /[?\\]/.exec(name) ?? [];
      const { code, err } = await drmas(['init', join(root, 'named', name)]);
      expect({ code, err }).toEqual(
        sign === undefined ? { code: 0, err: '' } : { code: 2, err: expect.stringContaining(`a path with ${sign}`) },
      );
      expect(await nodeFiles.exists(join(root, 'named', name))).toBe(sign === undefined);
    },
  );

  it('lists the examples if it knows none of this name, and writes nothing', async () => {
    const there = join(root, 'none');
    const { code, err } = await drmas(['init', there, '--example', 'juge']);
    expect(code).toBe(2);
    expect(err).toContain("there is no example 'juge'; did you mean 'judge'? (known: ai-sdk, ");
    expect(await readdir(root)).not.toContain('none');
    expect(await drmas(['init'])).toMatchObject({ code: 2, err: expect.stringContaining('expected a directory') });
    for (const wrong of ['../recipes/math', '', '.'])
      expect((await drmas(['init', there, '--example', wrong])).code).toBe(2);
  });

  it('has a row for each example in the table, and each row is an example', async () => {
    const table = await readFile(join(repository, 'examples/README.md'), 'utf8');
    const rows = [...table.matchAll(/^\| \[`([\w-]+)`\]\(([\w./-]+)\)/gm)].map(([, name]) => name);
    expect(rows.sort()).toEqual(names);
  });
});
