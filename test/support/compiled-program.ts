/** The command line, compiled, for tests that start it many times: passing its sources through a loader takes long. */
import { copyFile, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
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
  const engine = 'packages/engine';
  await mkdir(join(root, engine), { recursive: true });
  await copyFile(join(repository, engine, 'package.json'), join(root, engine, 'package.json'));
  for (const folder of [`${engine}/native`, 'node_modules'])
    await symlink(join(repository, folder), join(root, folder), 'dir');
  await mkdir(join(root, 'dist/node_modules/@drmas'), { recursive: true });
  await symlink(join('../../..', engine), join(root, 'dist/node_modules/@drmas/engine'), 'dir');
  const settings = { platform: 'node', target: 'node20', format: 'esm', logLevel: 'error' } as const;
  const compile = (folder: string, entries: readonly string[], outbase: string) =>
    build({
      ...settings,
      entryPoints: entries.map((entry) => join(repository, folder, entry, '**/*.ts')),
      outbase: join(repository, folder, outbase),
      outdir: join(root, folder, 'dist'),
    });
  await Promise.all([compile(engine, ['src'], 'src'), compile('', ['src', 'recipes'], '')]);
  return { main: join(root, 'dist/src/cli/main.js'), remove: () => rm(root, { recursive: true, force: true }) };
}
