import envPaths from 'env-paths';

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The directory of all caches (native build, warm starts, downloads): `DRMAS_CACHE`, or the user's cache directory. */
export function cacheDirectory(environment: Environment = process.env): string {
  const chosen = environment.DRMAS_CACHE;
  return chosen === undefined || chosen === '' ? envPaths('drmas', { suffix: '' }).cache : chosen;
}
