import { createRequire } from 'node:module';

/** The version of this package. drmas has the same. */
export function packageVersion(): string {
  const { version } = createRequire(import.meta.url)('@drmas/engine/package.json') as { version: string };
  return version;
}
