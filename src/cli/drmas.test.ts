import { execFile } from 'node:child_process';
import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parse } from 'acorn';
import { transform } from 'esbuild';
import { describe, expect, it } from 'vitest';
import { temporaryRoot } from '../../test/support/tiny-run.js';

const repository = fileURLToPath(new URL('../../', import.meta.url));
const root = temporaryRoot();

/** The entry as it ships. */
async function compiled(): Promise<string> {
  const source = await readFile(join(repository, 'src/cli/drmas.cts'), 'utf8');
  return (await transform(source, { loader: 'ts', target: 'node20' })).code;
}

/** A package `drmas` whose program prints its words, and `create-drmas` beside it. */
async function packages(name: string): Promise<{ readonly drmas: string; readonly create: string }> {
  const modules = join(root, name, 'node_modules');
  const cli = join(modules, 'drmas/dist/src/cli');
  await mkdir(cli, { recursive: true });
  await cp(join(repository, 'package.json'), join(modules, 'drmas/package.json'));
  await writeFile(join(cli, 'drmas.cjs'), await compiled());
  await writeFile(join(cli, 'main.js'), `console.log(process.argv.slice(2).join(' '))`);
  await cp(join(repository, 'create-drmas'), join(modules, 'create-drmas'), { recursive: true });
  await mkdir(join(modules, '.bin'));
  await symlink('../drmas/dist/src/cli/drmas.cjs', join(modules, '.bin/drmas'));
  return { drmas: join(modules, '.bin/drmas'), create: join(modules, 'create-drmas/index.cjs') };
}

/** Runs a program in a Node that calls itself `version`. */
async function under(version: string, program: string, ...words: string[]) {
  const disguise = join(root, `disguise-${version}.cjs`);
  const versions = `{ ...process.versions, node: '${version}' }`;
  await writeFile(disguise, `Object.defineProperty(process, 'versions', { value: ${versions} })`);
  const env = { ...process.env, NODE_OPTIONS: `--require "${disguise}"` };
  const ran = promisify(execFile)(process.execPath, [program, ...words], { env });
  return ran.then(
    ({ stdout }) => ({ code: 0, stdout, stderr: '' }),
    ({ code, stdout, stderr }) => ({ code, stdout, stderr }),
  );
}

describe('the command drmas', () => {
  it('can be parsed by Node 14, and so can create-drmas', async () => {
    expect(() => parse('a?.b', { ecmaVersion: 2019, sourceType: 'script' })).toThrow(SyntaxError);
    parse(await compiled(), { ecmaVersion: 2020, sourceType: 'script', allowHashBang: true });
    const create = await readFile(join(repository, 'create-drmas/index.cjs'), 'utf8');
    parse(create, { ecmaVersion: 2015, sourceType: 'script', allowHashBang: true });
  });

  it('says which limit keeps it from loading, and shows the stack of any other fault', async () => {
    const { drmas } = await packages('limits');
    const main = join(root, 'limits/node_modules/drmas/dist/src/cli/main.js');
    const ran = async (fault: string) => {
      await writeFile(main, `throw ${fault}`);
      return under('20.20.0', drmas);
    };
    expect(await ran(`Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' })`)).toEqual({
      ...{ code: 1, stdout: '' },
      stderr: 'error: drmas cannot start: EMFILE: too many open files. Raise the limit (see `ulimit -n`)\n',
    });
    expect((await ran(`new RangeError('WebAssembly.Instance(): Out of memory')`)).stderr).toContain('`ulimit -v`');
    expect((await ran(`new Error('a fault')`)).stderr).toMatch(/Error: a fault\n\s+at .*main\.js/);
  });

  it('ships with a README as npm create drmas', async () => {
    const cwd = join(repository, 'create-drmas');
    const { stdout } = await promisify(execFile)('npm', ['pack', '--dry-run', '--json'], { cwd });
    expect(stdout).toContain('"README.md"');
  });

  it('names the version that it needs instead of a SyntaxError, also as npm create drmas', {
    tags: 'verify',
  }, async () => {
    const { drmas, create } = await packages('old');
    for (const version of ['18.20.8', '20.19.9', '8.0.0'])
      for (const program of [drmas, create]) {
        const { code, stdout, stderr } = await under(version, program);
        expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
        expect(stderr).toMatch(`error: drmas needs Node 20.20 or newer, and this is Node ${version}. `);
      }
    const { engines } = JSON.parse(await readFile(join(repository, 'package.json'), 'utf8'));
    expect(engines.node).toBe('>=20.20');
  });

  it('starts the program in the versions that it needs', async () => {
    const { drmas, create } = await packages('new');
    for (const version of ['20.20.0', '21.0.0', '26.1.0'])
      expect(await under(version, drmas, 'train', 'math')).toMatchObject({ code: 0, stdout: 'train math\n' });
    expect(await under('22.0.0', create)).toMatchObject({ code: 0, stdout: 'init my-team\n' });
    expect(await under('22.0.0', create, 'here')).toMatchObject({ stdout: 'init here\n' });
  });
});
