import { chmod, lstat, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { cacheDirectory, type Environment, nodeFiles } from '../../platform.js';

/**
 * A directory for builds that can be written to: in the cache, or, where that cannot be written to, a private one of
 * this user among the system's temporary files.
 * @throws when neither can be made.
 */
export async function writableBuilds(environment: Environment = process.env): Promise<string> {
  const wanted = join(cacheDirectory(environment), 'native');
  if (await canWrite(wanted)) return wanted;
  const uid = process.getuid?.(); // `userInfo` fails for a user whom the system does not know
  const root = join(tmpdir(), `drmas-${uid ?? userInfo().username}`);
  const fallback = join(root, 'native');
  await mkdir(root, { recursive: true, mode: 0o700 });
  const { uid: owner, mode } = await lstat(root);
  // Code is loaded from here, and anybody can create names among the temporary files.
  if (uid !== undefined && (owner !== uid || (mode & 0o170000) !== 0o040000))
    throw new Error(`${root} belongs to somebody else`);
  if ((mode & 0o077) !== 0) await chmod(root, 0o700);
  if (await canWrite(fallback)) return fallback;
  throw new Error(`neither ${wanted} nor ${fallback} can be written to`);
}

async function canWrite(directory: string): Promise<boolean> {
  try {
    await nodeFiles.makeDirectory(directory);
    await rm(await mkdtemp(join(directory, '.try-')), { recursive: true });
    return true;
  } catch {
    return false;
  }
}
