import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The lines of JSON of a file of the repository. */
export const jsonLines = <Line>(path: string): Line[] =>
  readFileSync(join(import.meta.dirname, '../..', path), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Line);
