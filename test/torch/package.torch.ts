/** The engine on PyTorch from the packed package: compiled modules, and the worker that ships beside them. */
import { execFile } from 'node:child_process';
import { cp, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { LIBRARIES } from '../../scripts/support/libraries.js';
import { packAll, unpackInto } from '../../scripts/support/packed-packages.js';
import { temporaryRoot } from '../support/tiny-run.js';
import { torchPython } from './torch-python.js';

const available = await torchPython();
const repository = fileURLToPath(new URL('../..', import.meta.url));
const place = temporaryRoot();
const run = async (command: string, words: readonly string[], cwd: string) =>
  (await promisify(execFile)(command, words, { cwd, maxBuffer: 2 ** 26 })).stdout;

it.skipIf(!available)('trains from the packed package', async () => {
  const modules = join(place, 'project/node_modules');
  unpackInto(modules, packAll(place));
  // The sources as they are now: `dist` of a clone may be older.
  const compiled = join(place, 'compiled');
  await run(process.execPath, ['--import', 'tsx', 'scripts/compile.ts', compiled], repository);
  for (const [name, folder] of Object.entries({ drmas: '.', ...LIBRARIES })) {
    await rm(join(modules, name, 'dist'), { recursive: true, force: true });
    await cp(join(compiled, folder, 'dist'), join(modules, name, 'dist'), { recursive: true });
  }
  // The packages' own packages are those of the clone.
  await symlink(join(repository, 'node_modules'), join(place, 'node_modules'), 'junction');
  const few = ['warmStart.steps=1', 'training.steps=1', 'training.tasksPerStep=2', 'evaluation.tasks=2'];
  const words = [
    ...[
      join(modules, 'drmas/dist/src/cli/main.js'),
      'train',
      'solo',
      '--run',
      join(place, 'run'),
      '--device',
      'torch-cpu',
    ],
    ...few.flatMap((setting) => ['--set', setting]),
  ];
  expect(await run(process.execPath, words, place)).toContain('the run is in');
});
