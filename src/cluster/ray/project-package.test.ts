import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { INSTALLER, installerSource, projectPackage } from './project-package.js';

describe('node packages', () => {
  let root: string;
  let projects = 0;
  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'drmas-node-'));
  });
  afterAll(() => rm(root, { recursive: true }));

  /** The folder of a job's package, with a lockfile of a content. */
  async function project(content: string): Promise<string> {
    const folder = join(root, `project-${projects++}`);
    await mkdir(folder);
    for (const name of ['package.json', 'package-lock.json']) await writeFile(join(folder, name), content);
    await writeFile(join(folder, INSTALLER), installerSource);
    return folder;
  }

  /** A folder with a fake npm that records each run and its arguments. */
  async function withNpm(does: string): Promise<string> {
    const folder = await mkdtemp(join(root, 'bin-'));
    await writeFile(join(folder, 'npm'), `#!/bin/sh\necho "$@" >> '${join(folder, 'ran')}'\n${does}\n`);
    await chmod(join(folder, 'npm'), 0o755);
    return folder;
  }

  const installs = 'sleep 0.2; mkdir -p node_modules/.bin; cp package-lock.json node_modules/.bin/drmas';

  async function install(
    folder: string,
    npm: string,
    others = ':/usr/bin:/bin',
    places: Record<string, string> = { DRMAS_CACHE: join(root, 'cache') },
  ): Promise<{ code: number; err: string }> {
    const env = { PATH: `${npm}${others}`, ...places };
    const child = spawn(process.execPath, [INSTALLER, '.'], { cwd: folder, env });
    let err = '';
    child.stderr.on('data', (part) => {
      err += part;
    });
    const [code] = await once(child, 'close');
    return { code, err };
  }

  it('installs once for a content, also where jobs come at once and share a folder', { tags: 'verify' }, async () => {
    const npm = await withNpm(installs);
    const [one, other] = [await project('{"a":1}'), await project('{"a":1}')];
    const ended = await Promise.all([install(one, npm), install(one, npm), install(other, npm)]);
    expect(ended).toEqual(Array(3).fill({ code: 0, err: '' }));
    const before = (await readFile(join(npm, 'ran'), 'utf8')).split('\n').length;
    expect(await install(await project('{"a":1}'), npm)).toEqual({ code: 0, err: '' });
    expect((await readFile(join(npm, 'ran'), 'utf8')).split('\n')).toHaveLength(before);
    for (const folder of [one, other])
      expect(await readFile(join(folder, 'node_modules/.bin/drmas'), 'utf8')).toBe('{"a":1}');
    const changed = await project('{"a":2}');
    await install(changed, npm);
    expect(await readFile(join(changed, 'node_modules/.bin/drmas'), 'utf8')).toBe('{"a":2}');
    expect(await readdir(join(root, 'cache', 'packages'))).toHaveLength(2);
  });

  it('says what is missing, and leaves nothing half installed', async () => {
    const failing = await withNpm('mkdir node_modules; echo "npm error network ENOTFOUND registry" >&2; exit 1');
    expect(await install(await project('{"b":1}'), failing)).toEqual({
      code: 1,
      err: expect.stringMatching(/not on this node: npm ci ended with 1: npm error network ENOTFOUND registry/),
    });
    const nowhere = await mkdtemp(join(root, 'empty-'));
    expect(await install(await project('{"b":1}'), nowhere, '')).toEqual({
      code: 1,
      err: expect.stringMatching(/cannot start npm .*nodes need Node with npm, or --ray-command/),
    });
    expect((await readdir(join(root, 'cache', 'packages'))).filter((name) => name.includes('tmp'))).toEqual([]);
    expect(await install(await project('{"b":1}'), failing, '', { HOME: 'relative' })).toEqual({
      code: 1,
      err: expect.stringMatching(/not on this node: the home directory is unknown; set DRMAS_CACHE/),
    });
  });
});

it('packs the task files with relative paths, and refuses those that no node would find', async () => {
  const tasks = 'test/fixtures/gsm8k/test.jsonl';
  const [bare, packed] = [
    await projectPackage('math'),
    await projectPackage('math', { taskFiles: [tasks, '/a', 'b'] }),
  ];
  const holds = ({ bytes }: typeof bare) => Buffer.from(bytes).includes(tasks);
  expect([holds(bare), holds(packed)]).toEqual([false, true]);
  expect(packed.name).not.toBe(bare.name);
  const outside = await mkdtemp(join(tmpdir(), 'drmas-outside-'));
  await writeFile(join(outside, 'tasks.jsonl'), '');
  const taskFiles = [relative(process.cwd(), join(outside, 'tasks.jsonl'))];
  await expect(projectPackage('math', { taskFiles })).rejects.toThrow(
    /^no node finds the task file \.\.\/.+tasks\.jsonl: give its absolute path/,
  );
  await rm(outside, { recursive: true });
});
