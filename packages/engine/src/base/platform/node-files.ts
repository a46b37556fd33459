import {
  accessSync,
  closeSync,
  constants,
  fstatSync,
  fsync,
  fsyncSync,
  ftruncateSync,
  lstatSync,
  openSync,
  readFileSync,
  type Stats,
  statSync,
  writeSync,
} from 'node:fs';
import { type FileHandle, mkdir, open, readdir, readFile, rename, rm, stat, truncate } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { FileLock, Files } from '../core/files.js';

/** The prefix of temporary names. Such files and directories remain only after a process was killed. */
export const TEMPORARY = '.tmp-';

/** A temporary name for a file that will be called `name`, which no other process uses at the same time. */
export function temporaryName(name: string): string {
  return `${TEMPORARY}${name}-${Math.floor(Math.random() * 2 ** 32).toString(36)}`;
}

const WRITE_BYTES = 2 ** 18;

/**
 * The file system of this machine. When `write`, `flush`, `replace` and `rename` end, the bytes and the entries of
 * their directories are on disk, not only in the page cache.
 */
export const nodeFiles: Files = {
  async readText(path) {
    if (!(await stat(path)).isDirectory()) await sizeOf(path);
    return readFile(path, 'utf8'); // of a directory: the system's own error
  },
  size: sizeOf,
  readBytes,
  write,
  append,
  flush: (path) => flushFile(path, 'r+'),
  async replace(path, content) {
    const temporary = join(dirname(path), temporaryName(basename(path)));
    try {
      await write(temporary, content);
      await moveFile(temporary, path);
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
  },
  makeDirectory,
  async rename(from, to) {
    if (await exists(to)) throw alreadyExists(to);
    await flushTree(from);
    try {
      await rename(from, to);
    } catch (error) {
      // Another process was faster since the look above; on Windows the code is EPERM.
      throw codeOf(error) !== 'ENOENT' && (await exists(to)) ? alreadyExists(to) : error;
    }
    await flushDirectory(dirname(to));
  },
  remove: (path) => rm(path, { recursive: true, force: true }),
  async list(path) {
    try {
      return (await readdir(path)).sort();
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return [];
      throw error;
    }
  },
  exists,
  modified: async (path) => (await stat(path)).mtimeMs,
  truncate: (path, bytes) => truncate(path, bytes),
  lock: lockFile,
};

const alreadyExists = (path: string) => Object.assign(new Error(`EEXIST: ${path} already exists`), { code: 'EEXIST' });

/** @throws Error if it is no file: opening a pipe would block one of Node's few threads, a device may have no end */
async function sizeOf(path: string): Promise<number> {
  const status = await stat(path);
  if (!status.isFile())
    throw new Error(`it is ${status.isDirectory() ? 'a directory' : 'not a regular file'} '${path}'`);
  return status.size;
}

async function write(path: string, content: string | Uint8Array | Iterable<string | Uint8Array>): Promise<void> {
  const file = await open(path, 'w');
  try {
    const parts = typeof content === 'string' || content instanceof Uint8Array ? [content] : together(content);
    for (const part of parts) await file.writeFile(part); // each part starts at the end of the previous one
    await flushOpen(file);
  } catch (error) {
    throw withPath(error, path);
  } finally {
    await file.close();
  }
  await flushDirectory(dirname(path));
}

/** The same bytes in larger parts: one write for each line of a file takes longer than formatting the lines. */
function* together(parts: Iterable<string | Uint8Array>): Generator<Uint8Array> {
  const gathered = Buffer.allocUnsafe(WRITE_BYTES);
  let length = 0;
  for (const part of parts) {
    const bytes = typeof part === 'string' ? Buffer.from(part) : part;
    if (length > 0 && length + bytes.length > gathered.length) {
      yield gathered.subarray(0, length);
      length = 0;
    }
    if (bytes.length > gathered.length) yield bytes;
    else {
      gathered.set(bytes, length); // copy at once: the producer may reuse the part's memory
      length += bytes.length;
    }
  }
  yield gathered.subarray(0, length);
}

function append(path: string, content: string, at: number): void {
  const file = openSync(path, at === 0 ? 'a' : 'r+');
  try {
    const { size } = fstatSync(file);
    if (size !== at)
      throw new Error(`${path} has ${size} bytes, expected ${at}: another program has changed it meanwhile`);
    const bytes = Buffer.from(content);
    try {
      for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done, bytes.length - done, at + done);
    } catch (error) {
      ftruncateSync(file, at); // possible on a full disk too
      throw withPath(error, path);
    }
  } finally {
    closeSync(file);
  }
  if (at === 0) flushDirectorySync(dirname(path));
}

/** The most bytes that one read call transfers. */
const MOST_AT_ONCE = 2 ** 30;

async function readBytes(path: string, from: number, length: number): Promise<Uint8Array> {
  const file = await open(path, 'r');
  try {
    const bytes = new Uint8Array(length);
    for (let at = 0; at < length; ) {
      const { bytesRead } = await file.read(bytes, at, Math.min(MOST_AT_ONCE, length - at), from + at);
      if (bytesRead === 0) return bytes.subarray(0, at);
      at += bytesRead;
    }
    return bytes;
  } finally {
    await file.close();
  }
}

/** Node's code of a file system error, such as 'ENOENT'. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}

/**
 * The fault of a path where a directory is expected, as the end of a sentence that begins with the path. Undefined if
 * a directory is there that can be read, or if nothing is there.
 */
export function pathFault(path: string): string | undefined {
  try {
    const status = statSync(path);
    if (status.isDirectory()) accessSync(path, constants.R_OK | constants.X_OK);
    else return `is ${kindOf(status)} and no directory`;
  } catch (error) {
    const code = codeOf(error);
    if (code === 'EACCES' || code === 'EPERM') return 'cannot be read: this user has no permission';
    if (code === 'ELOOP') return 'is a link that leads to itself';
    if (code === 'ENOTDIR') return 'does not exist: a part of the path is a file';
    if (code === 'ENOENT' && lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink())
      return 'is a link that leads nowhere';
  }
  return undefined;
}

const kindOf = (status: Stats): string =>
  status.isFile() ? 'a file' : status.isSocket() ? 'a socket' : status.isFIFO() ? 'a pipe' : 'a device';

/** An error of the system about an open file, whose message names no file: the same with the file's path. */
function withPath(error: unknown, path: string): unknown {
  if (codeOf(error) === undefined || !(error instanceof Error) || 'path' in error) return error;
  error.message += ` '${path}'`;
  return Object.assign(error, { path });
}

/**
 * Creates a directory and its parents. The recursion of `mkdir` itself never ends below /proc, where it always fails.
 */
async function makeDirectory(path: string): Promise<void> {
  try {
    await mkdir(path);
    await flushDirectory(dirname(path));
  } catch (error) {
    if (codeOf(error) === 'EEXIST' && (await stat(path)).isDirectory()) return;
    const parent = dirname(path);
    if (codeOf(error) !== 'ENOENT' || parent === path) throw error;
    await makeDirectory(parent);
    await mkdir(path).catch((other: unknown) => {
      if (codeOf(other) !== 'EEXIST') throw other; // another process was faster
    });
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    // ENOTDIR: a part of the path is a file, such as a model in one file that is asked for a file of a directory.
    // ELOOP: a link that leads to itself.
    if (['ENOENT', 'ENOTDIR', 'ELOOP'].includes(codeOf(error) ?? '')) return false;
    throw error;
  }
}

/** Renames a file, in place of one that may be there. A crash leaves the old file or the new one. */
export async function moveFile(from: string, to: string): Promise<void> {
  await rename(from, to);
  await flushDirectory(dirname(to));
}

/** Flushes every file below `path`, so that a directory is complete when it appears under its final name. */
async function flushTree(path: string): Promise<void> {
  if ((await stat(path)).isDirectory()) {
    for (const name of await readdir(path)) await flushTree(join(path, name));
    return flushDirectory(path);
  }
  try {
    await flushFile(path, 'r+'); // Windows flushes only files that are open for writing
  } catch (error) {
    if (!READ_ONLY.has(codeOf(error) ?? '')) throw error;
    await flushFile(path, 'r').catch(tolerate);
  }
}

/** Error codes of a file that this process may not write. Such a file is complete; it is flushed if possible. */
const READ_ONLY = new Set(['EACCES', 'EPERM', 'EROFS']);

/** The error code of Node's permission model (`--permission`), which refuses `fsync`. */
const DENIED = 'ERR_ACCESS_DENIED';

/**
 * Flushes an open file. `FileHandle.sync` is absent in the file system that Yarn's Plug'n'Play gives to programs, and
 * the one way under Node's permission model.
 */
export async function flushOpen(file: FileHandle): Promise<void> {
  try {
    await promisify(fsync)(file.fd);
  } catch (error) {
    if (codeOf(error) !== DENIED) throw error;
    await file.sync();
  }
}

async function flushFile(path: string, flags: 'r' | 'r+'): Promise<void> {
  const file = await open(path, flags);
  try {
    await flushOpen(file);
  } finally {
    await file.close();
  }
}

/** Error codes of systems that cannot flush directories or read-only files: Windows, some network and FUSE ones. */
const CANNOT = new Set(['EPERM', 'EISDIR', 'EACCES', 'EINVAL', 'EBADF', 'ENOTSUP', 'ENOSYS', DENIED]);

/** Flushes a directory's entries if the system can: a flushed file can still lack its name on disk. */
export async function flushDirectory(path: string): Promise<void> {
  try {
    const directory = await open(path, 'r');
    try {
      await flushOpen(directory);
    } finally {
      await directory.close();
    }
  } catch (error) {
    tolerate(error);
  }
}

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

/** A CommonJS package without types. */
const PACKAGE = 'fs-native-extensions';

interface Native {
  /** @returns false when the bytes are locked already; throws with a `code` when there are no locks */
  tryLock(descriptor: number, offset: number, length: number): boolean;
}

/** The locked byte. It comes after the note, since Windows does not let other processes read locked bytes. */
const LOCKED_BYTE = 2 ** 30;

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
