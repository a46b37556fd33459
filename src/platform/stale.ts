import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** What is older than this belongs to no process that works: a build takes minutes, a cached model seconds. */
const STALE_MS = 24 * 60 * 60 * 1000;

/**
 * Removes what killed processes left in a directory that several processes write to: entries whose names begin with
 * `prefix` and that nothing has touched for a day. One that cannot be removed stays.
 */
export async function removeStale(directory: string, prefix: string, now = Date.now()): Promise<void> {
  for (const name of await readdir(directory).catch(() => [])) {
    if (!name.startsWith(prefix)) continue;
    const path = join(directory, name);
    const modified = await stat(path).catch(() => undefined);
    if (modified !== undefined && now - modified.mtimeMs > STALE_MS)
      await rm(path, { recursive: true, force: true }).catch(() => {});
  }
}
