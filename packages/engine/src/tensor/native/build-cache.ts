import { access, chmod, constants, lstat, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { cacheDirectory, type Environment, nodeFiles } from '../../platform.js';

/**
 * A directory in which programs can be built and run: in the cache, or else a private one of this user among the
 * system's temporary files.
 * @param canRun Throws if a program cannot be run
 * @throws if neither is one
 */
export async function writableBuilds(environment: Environment = process.env, canRun = mayRun): Promise<string> {
  const wanted = join(cacheDirectory(environment), 'native');
  if (await canHold(wanted, canRun)) return wanted;
  const uid = process.getuid?.(); // `userInfo` fails for a user whom the system does not know
  const root = join(tmpdir(), `drmas-${uid ?? userInfo().username}`);
  const fallback = join(root, 'native');
  await mkdir(root, { recursive: true, mode: 0o700 });
  const { uid: owner, mode } = await lstat(root);
  // Code is loaded from here, and anybody can create names among the temporary files.
  if (uid !== undefined && (owner !== uid || (mode & 0o170000) !== 0o040000))
    throw new Error(`${root} belongs to somebody else`);
  if ((mode & 0o077) !== 0) await chmod(root, 0o700);
  if (await canHold(fallback, canRun)) return fallback;
  throw new Error(`neither ${wanted} nor ${fallback} can hold programs (read-only, full, or mounted with noexec)`);
}

/** @throws if the system does not run a program */
const mayRun = (program: string): Promise<void> => access(program, constants.X_OK);

/** Whether programs in a directory can be made and run: some systems mount homes and temporary files with `noexec`. */
async function canHold(directory: string, canRun: typeof mayRun): Promise<boolean> {
  try {
    await nodeFiles.makeDirectory(directory);
    const own = await mkdtemp(join(directory, '.try-'));
    try {
      await writeFile(join(own, 'program'), '', { mode: 0o700 });
      await canRun(join(own, 'program'));
    } finally {
      await rm(own, { recursive: true });
    }
    return true;
  } catch {
    return false;
  }
}
