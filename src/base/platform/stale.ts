import { join } from 'node:path';
import type { Files } from '../core/files.js';

/** The age from which an entry belongs to no running process: a build takes minutes, a cached model seconds. */
const STALE_MS = 24 * 60 * 60 * 1000;

/**
 * Removes entries that killed processes left in a shared directory: names that begin with `prefix`, unchanged for a
 * day. An entry that cannot be removed stays.
 */
export async function removeStale(files: Files, directory: string, prefix: string, now = Date.now()): Promise<void> {
  for (const name of await files.list(directory).catch(() => [])) {
    if (!name.startsWith(prefix)) continue;
    const path = join(directory, name);
    const modified = await files.modified(path).catch(() => now);
    if (now - modified > STALE_MS) await files.remove(path).catch(() => {});
  }
}
