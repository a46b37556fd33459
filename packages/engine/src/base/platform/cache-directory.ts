import { homedir, userInfo } from 'node:os';
import { isAbsolute, join } from 'node:path';
import type { Files } from '../core/files.js';

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The user's home directory: `HOME`, else the system's entry. It is `/` for a user whom the system does not know, as a
 * container may have one.
 */
export function homeDirectory(): string {
  for (const find of [homedir, () => userInfo().homedir]) {
    try {
      const home = find();
      if (isAbsolute(home)) return home;
    } catch {
      // the system does not know the user
    }
  }
  return '/';
}

/** The directory of all caches (native build, warm starts, downloads): `DRMAS_CACHE`, or the user's cache directory. */
export function cacheDirectory(environment: Environment = process.env): string {
  const { DRMAS_CACHE } = environment;
  if (DRMAS_CACHE !== undefined && DRMAS_CACHE !== '') return DRMAS_CACHE;
  return userDirectory({ darwin: 'Caches', win32: ['LOCALAPPDATA', 'Local', 'Cache'], xdg: ['CACHE_HOME', '.cache'] });
}

/** The directory with the user's configuration of drmas, such as a key. */
export function configDirectory(): string {
  const win32 = ['APPDATA', 'Roaming', 'Config'] as const;
  return userDirectory({ darwin: 'Preferences', win32, xdg: ['CONFIG_HOME', '.config'] });
}

interface Places {
  /** The folder below `Library`. */
  readonly darwin: string;
  /** The variable, its default below `AppData`, and the folder below `drmas`. */
  readonly win32: readonly [string, string, string];
  /** The variable without `XDG_`, and its default below the home directory. */
  readonly xdg: readonly [string, string];
}

/** A user's directory of drmas. A relative path in a variable does not count, as XDG's specification demands. */
function userDirectory({ darwin, win32, xdg }: Places): string {
  const home = homeDirectory();
  const given = (name: string, standard: string) => {
    const path = process.env[name] ?? '';
    return isAbsolute(path) ? path : join(home, standard);
  };
  if (process.platform === 'darwin') return join(home, 'Library', darwin, 'drmas');
  if (process.platform === 'win32') return join(given(win32[0], join('AppData', win32[1])), 'drmas', win32[2]);
  return join(given(`XDG_${xdg[0]}`, xdg[1]), 'drmas');
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
