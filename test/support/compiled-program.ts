/** The command line, compiled, for tests that start it many times: passing its sources through a loader takes long. */
import { copyFile, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const repository = fileURLToPath(new URL('../..', import.meta.url));

export interface CompiledProgram {
  /** The file that Node starts. */
  readonly main: string;
  remove(): Promise<void>;
}

/** Compiles every source to a file of its own, in a package laid out as the built one is. */
export async function compiledProgram(): Promise<CompiledProgram> {
  const root = await mkdtemp(join(tmpdir(), 'drmas-program-'));
  await copyFile(join(repository, 'package.json'), join(root, 'package.json'));
  for (const folder of ['native', 'node_modules']) await symlink(join(repository, folder), join(root, folder), 'dir');
  await build({
    entryPoints: ['src', 'recipes'].map((folder) => join(repository, folder, '**/*.ts')),
    outbase: repository,
    outdir: join(root, 'dist'),
    platform: 'node',
    target: 'node20',
    format: 'esm',
    logLevel: 'error',
  });
  return { main: join(root, 'dist/src/cli/main.js'), remove: () => rm(root, { recursive: true, force: true }) };
}
