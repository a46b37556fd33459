import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { RunError } from '../../base/errors.js';

/** The directory of the built page. @throws RunError when the page is not built */
export function pageDirectory(): string {
  const root = dirname(createRequire(import.meta.url).resolve('drmas/package.json'));
  const directory = join(root, 'dist', 'dashboard');
  if (existsSync(join(directory, 'index.html'))) return directory;
  throw new RunError(`the page of the dashboard is not in ${directory}; build it with \`npm run build\``);
}
