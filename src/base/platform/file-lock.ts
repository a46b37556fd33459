import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { FileLock } from '../core/files.js';

/** A CommonJS package without types. */
const PACKAGE = 'fs-native-extensions';

interface Native {
  /** @returns false when the bytes are locked already; throws with a `code` when there are no locks */
  tryLock(descriptor: number, offset: number, length: number): boolean;
}

/** The locked byte. It comes after the note, since Windows does not let other processes read locked bytes. */
const LOCKED_BYTE = 2 ** 30;

/** Codes of systems and file systems without locks. */
const NO_LOCKS = new Set(['ENOSYS', 'ENOTSUP', 'EOPNOTSUPP', 'EINVAL', 'ENOLCK']);

/**
 * Locks a file through the operating system, which releases the lock when the process ends, even after a crash. The
 * note names the holder for other processes. @throws if the file cannot be written
 */
export async function lockFile(path: string, note: string): Promise<FileLock> {
  const locks = native();
  const descriptor = openSync(path, 'a+'); // a number: no garbage collection closes it early
  let held = false;
  try {
    if (typeof locks === 'string') return { type: 'unsupported', reason: locks };
    held = locks.tryLock(descriptor, LOCKED_BYTE, 1);
    if (!held) return { type: 'taken', note: readFileSync(descriptor, 'utf8') };
    ftruncateSync(descriptor);
    writeSync(descriptor, note);
    return { type: 'held', release: async () => closeSync(descriptor) };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (held || code === undefined || !NO_LOCKS.has(code)) throw error;
    return { type: 'unsupported', reason: message };
  } finally {
    if (!held) closeSync(descriptor);
  }
}

/** The package, or why it does not load: it is compiled for the usual systems, not for all. */
function native(): Native | string {
  try {
    return createRequire(import.meta.url)(PACKAGE) as Native;
  } catch (error) {
    return `${PACKAGE} does not load on ${process.platform}-${process.arch} (${(error as Error).message})`;
  }
}
