import { join } from 'node:path';
import type { Files } from '../core/files.js';

/** What is older than this belongs to no process that works: a build takes minutes, a cached model seconds. */
const STALE_MS = 24 * 60 * 60 * 1000;

/**
 * Removes what killed processes left in a directory that several processes write to: entries whose names begin with
 * `prefix` and that nothing has touched for a day. One that cannot be removed stays.
 */
export async function removeStale(files: Files, directory: string, prefix: string, now = Date.now()): Promise<void> {
  for (const name of await files.list(directory).catch(() => [])) {
    if (!name.startsWith(prefix)) continue;
    const path = join(directory, name);
    const modified = await files.modified(path).catch(() => now);
    if (now - modified > STALE_MS) await files.remove(path).catch(() => {});
  }
}
