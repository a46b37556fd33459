import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { filesOfGroup } from './groups.js';

const root = join(import.meta.dirname, '..');
const textOf = (file: string) => readFileSync(join(root, file), 'utf8');
const filesBelow = (folder: string) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => !file.includes('node_modules'))
    .map((file) => `${folder}/${file}`);

describe('a group of tests', () => {
  it('has the files whose tags belong to it', () => {
    const folder = mkdtempSync(join(tmpdir(), 'drmas-groups-'));
    const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
    mkdirSync(join(folder, 'node_modules'));
    write('daily.test.ts', "it('adds', add);");
    write('slow.test.ts', ['// @module', 'tag verify'].join('-')); // in one piece it would tag this file
    write('both.test.ts', "it('adds', { tags: 'verify' }, add);");
    write('node_modules/foreign.test.ts', '');
    write('code.ts', '');
    const groups = (['test', 'verify', 'all'] as const).map((group) => filesOfGroup(group, folder).sort());
    rmSync(folder, { recursive: true });
    expect(groups).toEqual([
      ['both.test.ts', 'daily.test.ts'],
      ['both.test.ts', 'slow.test.ts'],
      ['both.test.ts', 'daily.test.ts', 'slow.test.ts'],
    ]);
  });

  it('has every test file: the daily one or the slow one, or both for a file with tests of both', () => {
    const [daily, slow, all] = (['test', 'verify', 'all'] as const).map((group) => filesOfGroup(group, root));
    expect([...new Set([...(daily ?? []), ...(slow ?? [])])].sort()).toEqual([...(all ?? [])].sort());
    const both = daily?.filter((file) => slow?.includes(file)) ?? [];
    expect(both.filter((file) => !/\btags\b/.test(textOf(file)))).toEqual([]);
  });

  it('knows a slow test by the text of its own file: shared contracts give no tags', () => {
    const shared = [...filesBelow('test/contracts'), ...filesBelow('test/support')].filter((file) =>
      /\.ts$/.test(file),
    );
    expect(shared.length).toBeGreaterThan(30);
    expect(shared.filter((file) => /\btags\s*:|@module[-]tag/.test(textOf(file)))).toEqual([]);
  });
});

describe('a suite beside these groups', () => {
  it('has a configuration that finds each of its files', () => {
    const files = filesBelow('test').filter((file) => /^test\/[^/]+\/.*\.[a-z0-9]+\.ts$/.test(file));
    const config = textOf('test/suites.config.ts');
    const tests = files.filter((file) => !/\.(test|d|config)\.ts$/.test(file));
    const lost = tests.filter((file) => {
      const [, folder = '', suffix = ''] = /^test\/([^/]+)\/.*(\.[a-z0-9]+\.ts)$/.exec(file) ?? [];
      return !new RegExp(`^  '?${folder}'?: {\\s+files: '.*\\*\\${suffix}'`, 'm').test(config);
    });
    expect(tests.length).toBeGreaterThan(10);
    expect(lost).toEqual([]);
  });
});
