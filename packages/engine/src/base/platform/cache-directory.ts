import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Files } from '../core/files.js';

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The user's home directory. It is `/` for a user whom the system does not know, as a container may have one. */
export function homeDirectory(): string {
  try {
    return homedir() || '/';
  } catch {
    return '/';
  }
}

/** The directory of all caches (native build, warm starts, downloads): `DRMAS_CACHE`, or the user's cache directory. */
export function cacheDirectory(environment: Environment = process.env): string {
  const { DRMAS_CACHE } = environment;
  if (DRMAS_CACHE !== undefined && DRMAS_CACHE !== '') return DRMAS_CACHE;
  const home = homeDirectory();
  const { LOCALAPPDATA, XDG_CACHE_HOME } = process.env;
  if (process.platform === 'darwin') return join(home, 'Library', 'Caches', 'drmas');
  if (process.platform === 'win32') return join(LOCALAPPDATA || join(home, 'AppData', 'Local'), 'drmas', 'Cache');
  return join(XDG_CACHE_HOME || join(home, '.cache'), 'drmas');
}

/** The directory with the user's configuration of drmas, such as a key. */
export function configDirectory(): string {
  const home = homeDirectory();
  const { APPDATA, XDG_CONFIG_HOME } = process.env;
  if (process.platform === 'darwin') return join(home, 'Library', 'Preferences', 'drmas');
  if (process.platform === 'win32') return join(APPDATA || join(home, 'AppData', 'Roaming'), 'drmas', 'Config');
  return join(XDG_CONFIG_HOME || join(home, '.config'), 'drmas');
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
