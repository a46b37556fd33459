import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { workerProgram } from './worker-program.js';

it('is in the clone, and beside the compiled modules of a package', () => {
  expect(existsSync(join(workerProgram(import.meta.url), '__main__.py'))).toBe(true);
  const compiled = pathToFileURL(join(process.cwd(), 'packages/engine/dist/torch/worker-program.js')).href;
  expect(workerProgram(compiled)).toBe(workerProgram(import.meta.url));
});
