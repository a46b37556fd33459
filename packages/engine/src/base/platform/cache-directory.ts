import { join } from 'node:path';
import envPaths from 'env-paths';
import type { Files } from '../core/files.js';

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The directory of all caches (native build, warm starts, downloads): `DRMAS_CACHE`, or the user's cache directory. */
export function cacheDirectory(environment: Environment = process.env): string {
  const chosen = environment.DRMAS_CACHE;
  return chosen === undefined || chosen === '' ? envPaths('drmas', { suffix: '' }).cache : chosen;
}

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
