import { createRequire } from 'node:module';
import { dirname, join, sep } from 'node:path';

/** The folder of each library of drmas, such as `@drmas/engine`: its code is below `src` or `dist` of it. */
export function libraryFolders(): ReadonlyMap<string, string> {
  try {
    const require = createRequire(import.meta.url);
    const { dependencies } = require('drmas/package.json') as { dependencies: Readonly<Record<string, string>> };
    const names = Object.keys(dependencies).filter((name) => name.startsWith('@drmas/'));
    return new Map(names.map((name) => [name, dirname(require.resolve(`${name}/package.json`))]));
  } catch {
    return new Map(); // in a bundle all code is one file
  }
}

export const libraryPaths = (): string[] => [...libraryFolders().values()].map((folder) => join(folder, sep));
