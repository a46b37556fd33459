/**
 * The two groups of tests: the daily ones of `npm test`, and the slow ones of `npm run verify`. A slow test has the tag
 * `verify`; a file whose tests are all slow says so once, by a comment with `@module-tag verify`. Every other test is a
 * daily one, so each test belongs to exactly one group.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const GROUPS = ['test', 'verify', 'all'] as const;
export type Group = (typeof GROUPS)[number];

/** Folders that hold test files of other programs: packages, build output, the template of a new project. */
const NOT_OURS = ['node_modules', '.git', 'dist', 'templates'];

/**
 * The test files that a group of tests reads, by the tags in their text. Loading a file costs time, so the daily
 * group does not read a file whose tests are all slow, and the slow group reads only files that name a tag.
 * @param root the root of the repository, an absolute path
 */
export function filesOfGroup(group: Group, root: string): string[] {
  const files = testFilesBelow(root);
  if (group === 'all') return files;
  const belongs =
    group === 'test'
      ? (text: string) => !/@module-tag verify\b/.test(text) // as vitest reads it
      : (text: string) => /@module-tag verify\b|\btags\b/.test(text);
  return files.filter((file) => belongs(readFileSync(join(root, file), 'utf8')));
}

/** Paths relative to `root`, with forward slashes. */
function testFilesBelow(root: string, folder = ''): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory()) return NOT_OURS.includes(entry.name) ? [] : testFilesBelow(root, path);
    return entry.isFile() && entry.name.endsWith('.test.ts') ? [path] : [];
  });
}
