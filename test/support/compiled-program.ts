/** The command line, compiled, for tests that start it many times: passing its sources through a loader takes long. */
import { copyFile, mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { LIBRARIES } from '../../scripts/support/libraries.js';

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
  const modules = join(root, 'node_modules');
  await mkdir(join(modules, '@drmas'), { recursive: true });
  for (const [name, folder] of Object.entries(LIBRARIES)) {
    await mkdir(join(root, folder), { recursive: true });
    await copyFile(join(repository, folder, 'package.json'), join(root, folder, 'package.json'));
    await symlink(join('../..', folder), join(modules, name), 'dir'); // relative: a host sees the package elsewhere
  }
  for (const name of await readdir(join(repository, 'node_modules')))
    if (name !== '@drmas') await symlink(join(repository, 'node_modules', name), join(modules, name), 'dir');
  await symlink(join(repository, 'packages/engine/native'), join(root, 'packages/engine/native'), 'dir');
  const settings = { platform: 'node', target: 'node20', format: 'esm', logLevel: 'error' } as const;
  const compile = (folder: string, entries: readonly string[], outbase: string) =>
    build({
      ...settings,
      entryPoints: entries.map((entry) => join(repository, folder, entry, '**/*.ts')),
      outbase: join(repository, folder, outbase),
      outdir: join(root, folder, 'dist'),
    });
  const libraries = Object.values(LIBRARIES).map((folder) => compile(folder, ['src'], 'src'));
  await Promise.all([...libraries, compile('', ['src', 'recipes'], '')]);
  return { main: join(root, 'dist/src/cli/main.js'), remove: () => rm(root, { recursive: true, force: true }) };
}
