import { closeSync, fsyncSync, openSync } from 'node:fs';
import { open } from 'node:fs/promises';

/** Error codes of systems that cannot flush directories or read-only files: Windows, some network and FUSE ones. */
const CANNOT = new Set(['EPERM', 'EISDIR', 'EACCES', 'EINVAL', 'EBADF', 'ENOTSUP', 'ENOSYS']);

/** Flushes a directory's entries if the system can: a flushed file can still lack its name on disk. */
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

/** @throws the error, unless it means that the system cannot flush this */
export function tolerate(error: unknown): void {
  const { code } = error as NodeJS.ErrnoException;
  if (code === undefined || !CANNOT.has(code)) throw error;
}
