// @module-tag verify
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { nextVersion, Refusal, type ReleaseOptions, release } from './release.js';

const CHANGELOG = '# Changelog\n\n## Unreleased\n\n- It sings.\n\n## 0.1.0 (2026-01-01)\n\n- It hums.\n';
const LOCK = `{
  "name": "songs",
  "version": "0.1.0",
  "packages": {
    "": { "name": "songs", "version": "0.1.0" },
    "node_modules/other": { "version": "0.1.0" }
  }
}
`;

let root: string;
const git = (...words: string[]) => execFileSync('git', words, { cwd: root, encoding: 'utf8' }).trim();
const read = (name: string) => readFileSync(join(root, name), 'utf8');
function put(name: string, text: string): void {
  mkdirSync(dirname(join(root, name)), { recursive: true });
  writeFileSync(join(root, name), text);
}

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'drmas-release-'));
  git('init', '--quiet', '--initial-branch=main');
  for (const [key, value] of Object.entries({
    'user.name': 'A',
    'user.email': 'a@example.org',
    'commit.gpgsign': 'false',
  }))
    git('config', key, value);
  const files = ['dist', 'CHANGELOG.md'];
  const dist = { types: './dist/src/index.d.ts', default: './dist/src/index.js' };
  put(
    'package.json',
    `${JSON.stringify({ name: 'songs', version: '0.1.0', files, exports: { '.': dist } }, null, 2)}\n`,
  );
  put('package-lock.json', LOCK);
  put('CHANGELOG.md', CHANGELOG);
  for (const name of ['README.md', 'LICENSE', 'dist/src/index.js', 'dist/src/index.d.ts']) put(name, 'x\n');
  put('.gitignore', 'release\n');
  git('add', '.');
  git('commit', '--quiet', '--message', 'First');
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function run(changes: Partial<ReleaseOptions> = {}) {
  const lines: string[] = [];
  const say = (line: string) => lines.push(line);
  const version = release({ root, version: 'minor', dryRun: false, checks: [], day: '2026-02-03', say, ...changes });
  return { version, printed: lines.join('\n') };
}
const state = () => [
  git('rev-parse', 'HEAD'),
  git('tag'),
  git('status', '--porcelain'),
  existsSync(join(root, 'release')),
];

describe('a release', () => {
  it('sets the version, dates the changelog, packs, writes notes, commits and tags, and sends nothing', () => {
    const { version, printed } = run();
    expect(version).toBe('0.2.0');
    expect(JSON.parse(read('package.json')).version).toBe('0.2.0');
    expect(JSON.parse(read('package-lock.json'))).toEqual({
      name: 'songs',
      version: '0.2.0',
      packages: { '': { name: 'songs', version: '0.2.0' }, 'node_modules/other': { version: '0.1.0' } },
    });
    expect(read('CHANGELOG.md')).toBe(
      '# Changelog\n\n## Unreleased\n\n## 0.2.0 (2026-02-03)\n\n- It sings.\n\n## 0.1.0 (2026-01-01)\n\n- It hums.\n',
    );
    expect(readdirSync(join(root, 'release')).sort()).toEqual(['notes-0.2.0.md', 'songs-0.2.0.tgz']);
    expect(read('release/notes-0.2.0.md')).toBe('# 0.2.0 (2026-02-03)\n\n- It sings.\n');
    expect(git('tag', '--points-at', 'HEAD')).toBe('v0.2.0');
    expect(git('log', '-1', '--format=%s')).toBe('Version 0.2.0');
    expect(git('status', '--porcelain')).toBe('');
    expect(printed).toContain('nothing was sent anywhere');
    expect(() => run({ version: '0.2.1' })).toThrow('nothing under Unreleased');
  });

  it('puts the paper beside the packages, and goes on without it where nothing builds a PDF', () => {
    put(
      'paper.mjs',
      "import { mkdirSync, writeFileSync } from 'node:fs'; const [, , pdf, folder] = process.argv; " +
        "mkdirSync(folder, { recursive: true }); writeFileSync(folder + '/' + pdf, 'x');",
    );
    git('add', '.');
    git('commit', '--quiet', '--message', 'A paper');
    const { printed } = run({ paper: ['node', 'paper.mjs', 'paper.pdf'] });
    expect(printed).toContain('release/paper-0.2.0.pdf');
    expect(readdirSync(join(root, 'release')).sort()).toEqual(['notes-0.2.0.md', 'paper-0.2.0.pdf', 'songs-0.2.0.tgz']);
    put('CHANGELOG.md', CHANGELOG);
    git('commit', '--quiet', '--all', '--message', 'More');
    run({ version: '0.3.0', paper: ['node', 'paper.mjs', 'paper.tex'] });
    expect(readdirSync(join(root, 'release')).filter((name) => name.includes('paper'))).toEqual(['paper-0.2.0.pdf']);
  });

  it('releases the packages of the workspace and of npm create with it, but no private one', () => {
    const pack = (folder: string, manifest: object) => {
      put(`${folder}/package.json`, `${JSON.stringify(manifest, null, 2)}\n`);
      for (const name of ['README.md', 'LICENSE']) put(`${folder}/${name}`, 'x\n');
    };
    const creator = { name: 'create-drmas', version: '0.1.0', dependencies: { songs: '^0.1.0', other: '^0.1.0' } };
    const voice = { name: '@songs/voice', version: '0.1.0', dependencies: { other: '0.1.0' } };
    const page = { name: '@songs/page', version: '0.0.0', private: true, devDependencies: { '@songs/voice': '0.1.0' } };
    pack('create-drmas', creator);
    pack('packages/voice', voice);
    pack('packages/page', page);
    const songs = JSON.parse(read('package.json'));
    put('package.json', JSON.stringify({ ...songs, dependencies: { '@songs/voice': '0.1.0' } }));
    const lock = JSON.parse(LOCK);
    lock.packages[''].dependencies = { '@songs/voice': '0.1.0' };
    lock.packages['packages/voice'] = voice;
    put('package-lock.json', JSON.stringify(lock));
    git('add', '.');
    git('commit', '--quiet', '--message', 'Add packages');

    run();
    const dependencies = { songs: '^0.2.0', other: '^0.1.0' };
    expect(JSON.parse(read('create-drmas/package.json'))).toEqual({ ...creator, version: '0.2.0', dependencies });
    expect(JSON.parse(read('packages/voice/package.json'))).toEqual({ ...voice, version: '0.2.0' });
    expect(JSON.parse(read('packages/page/package.json'))).toEqual(page);
    expect(JSON.parse(read('package.json')).dependencies).toEqual({ '@songs/voice': '0.2.0' });
    expect(JSON.parse(read('package-lock.json')).packages).toEqual({
      '': { name: 'songs', version: '0.2.0', dependencies: { '@songs/voice': '0.2.0' } },
      'packages/voice': { ...voice, version: '0.2.0' },
      'node_modules/other': { version: '0.1.0' },
    });
    expect(readdirSync(join(root, 'release')).sort()).toEqual([
      'create-drmas-0.2.0.tgz',
      'notes-0.2.0.md',
      'songs-0.2.0.tgz',
      'songs-voice-0.2.0.tgz',
    ]);
  });

  it('changes nothing in a dry run, and prints the steps', () => {
    const before = state();
    const { printed } = run({ dryRun: true, checks: [['false']] });
    expect(state()).toEqual(before);
    expect(printed).toContain('songs 0.1.0 -> 0.2.0');
    expect(printed).toContain('would do: false');
    expect(printed).toContain('- It sings.');
  });

  it.each<[string, () => void, Partial<ReleaseOptions>, string]>([
    ['a dirty tree', () => put('README.md', 'y\n'), {}, 'expected a clean tree, found\nM README.md'],
    [
      'another branch',
      () => git('switch', '--quiet', '--create', 'topic'),
      {},
      'expected the branch main, found topic',
    ],
    ['a tag that is there', () => git('tag', 'v0.2.0'), {}, 'the tag v0.2.0 exists'],
    ['a version that is lower', () => {}, { version: '0.0.9' }, '0.0.9 is not above 0.1.0'],
    ['no version', () => {}, { version: '' }, "expected a version, or major, minor or patch; got ''"],
  ])('refuses %s', (_, prepare, changes, message) => {
    prepare();
    const before = state();
    expect(() => run(changes)).toThrow(Refusal);
    expect(() => run(changes)).toThrow(message);
    expect(state()).toEqual(before);
  });

  it('stops if a check fails or the package is wrong, and leaves the tree unchanged', () => {
    const before = state();
    expect(() => run({ checks: [['false']] })).toThrow('Command failed: false');
    expect(state()).toEqual(before);
    put('dist/src/a.test.js', 'x\n');
    git('add', '.');
    git('commit', '--quiet', '--message', 'A test in the package');
    const [commit] = state();
    expect(() => run()).toThrow('the package songs holds dist/src/a.test.js');
    git('rm', '--quiet', 'dist/src/a.test.js', 'dist/src/index.js');
    git('commit', '--quiet', '--message', 'An empty package');
    expect(() => run()).toThrow('the package songs lacks dist/src/index.js');
    expect(git('status', '--porcelain')).toBe('');
    expect(git('tag')).toBe('');
    expect(git('rev-parse', 'HEAD^')).toBe(commit);
  });
});

it('the next version is the wanted one, or raises one number', () => {
  expect(['major', 'minor', 'patch', '1.2.3'].map((wanted) => nextVersion('0.9.4', wanted))).toEqual([
    ...['1.0.0', '0.10.0', '0.9.5', '1.2.3'],
  ]);
  expect(() => nextVersion('0.9.4', '0.9.4')).toThrow(Refusal);
  expect(() => nextVersion('0.9.4', '1.0.0-beta')).toThrow('expected a version');
});
