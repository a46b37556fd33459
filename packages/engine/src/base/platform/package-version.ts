import { createRequire } from 'node:module';

/** The version of this package. */
export function packageVersion(): string {
  const { version } = createRequire(import.meta.url)('drmas/package.json') as { version: string };
  return version;
}
