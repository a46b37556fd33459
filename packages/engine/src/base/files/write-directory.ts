import { join } from 'node:path';
import type { Files } from '../core/files.js';
import { TEMPORARY, temporaryName } from '../platform/node-files.js';

/**
 * Makes a directory appear complete or not at all. `fill` writes into a temporary directory beside it, which is then
 * flushed and renamed. If `fill` fails, the temporary directory is removed.
 */
export async function writeDirectory(
  files: Files,
  parent: string,
  name: string,
  fill: (directory: string) => Promise<void>,
): Promise<string> {
  const temporary = join(parent, temporaryName(name));
  const target = join(parent, name);
  try {
    await files.makeDirectory(temporary);
    await fill(temporary);
    await files.rename(temporary, target);
  } catch (error) {
    await files.remove(temporary);
    throw error;
  }
  return target;
}

/** Removes the temporary directories of killed processes. No other process may be writing into `parent`. */
export async function removeTemporary(files: Files, parent: string): Promise<void> {
  for (const name of await files.list(parent)) if (name.startsWith(TEMPORARY)) await files.remove(join(parent, name));
}
