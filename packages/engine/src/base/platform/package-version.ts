import { createRequire } from 'node:module';
import { dirname } from 'node:path';

/** The version of this package, which is that of drmas. */
export function packageVersion(): string {
  const { version } = createRequire(import.meta.url)('@drmas/engine/package.json') as { version: string };
  return version;
}

/** The folder of this package: its code is below `src` or `dist` of it. */
export const engineFolder = (): string => dirname(createRequire(import.meta.url).resolve('@drmas/engine/package.json'));
