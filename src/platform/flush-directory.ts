import { closeSync, fsyncSync, openSync } from 'node:fs';
import { open } from 'node:fs/promises';

/** Codes of systems that flush no directories, nor what was opened to be read: Windows, some network and FUSE ones. */
const CANNOT = new Set(['EPERM', 'EISDIR', 'EACCES', 'EINVAL', 'EBADF', 'ENOTSUP', 'ENOSYS']);

/** Puts the entries of a directory on disk, where the system can: a file that is flushed may still have no name. */
export async function flushDirectory(path: string): Promise<void> {
  try {
    const directory = await open(path, 'r');
    try {
      await directory.sync();
    } finally {
      await directory.close();
    }
  } catch (error) {
    tolerate(error);
  }
}

/** `flushDirectory` for callers that cannot wait. */
export function flushDirectorySync(path: string): void {
  try {
    const directory = openSync(path, 'r');
    try {
      fsyncSync(directory);
    } finally {
      closeSync(directory);
    }
  } catch (error) {
    tolerate(error);
  }
}

/** @throws the error, unless it says that the system cannot flush such a thing */
export function tolerate(error: unknown): void {
  const { code } = error as NodeJS.ErrnoException;
  if (code === undefined || !CANNOT.has(code)) throw error;
}
