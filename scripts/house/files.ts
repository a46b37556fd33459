import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** The files that git knows or would add, relative to the root; files that are already deleted are left out. */
export function filesOf(root: string): string[] {
  const list = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--deduplicate'], {
    cwd: root,
    encoding: 'utf8',
  });
  return list.split('\0').filter((path) => path !== '' && existsSync(join(root, path)));
}
