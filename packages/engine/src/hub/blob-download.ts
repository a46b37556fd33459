/**
 * Downloads one file of a model into the cache. An interrupted download is resumed, the file is checked against its
 * hash, and one process at a time downloads it.
 */

import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, open, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import pRetry from 'p-retry';
import { AnswerError, HubError, messageOf } from '../errors.js';
import { askedWait, nodeFiles } from '../platform.js';
import type { HubClient, RemoteFile } from './hub-client.js';
import { type ModelCache, statusOf } from './model-cache.js';

interface BlobDownloadOptions {
  readonly signal: AbortSignal;
  /** Wait before the first repetition of a request that failed; it doubles with each further one. */
  readonly retryDelayMs: number;
  /** Receives the number of bytes downloaded so far. */
  readonly onBytes: (bytes: number) => void;
  /** Called when another process is downloading the file already. */
  readonly onWait: () => void;
  /** Receives a message when a busy hub asks to wait. */
  readonly onProgress?: ((message: string) => void) | undefined;
}

const RETRIES = 4;

/**
 * Puts a file's blob into the cache. The bytes of an interrupted download stay beside it, and the next call continues
 * from there.
 * @throws HubError; the signal's reason
 */
export async function downloadBlob(
  cache: ModelCache,
  client: HubClient,
  commit: string,
  file: RemoteFile,
  options: BlobDownloadOptions,
): Promise<void> {
  const { signal, retryDelayMs, onWait, onProgress } = options;
  // The names differ from huggingface_hub's. Its locks are of another kind, so the two programs must not append to the
  // same partial file.
  const lock = join(dirname(cache.directory), '.locks', basename(cache.directory), `${file.hash}.drmas.lock`);
  const attempt = () => fetchRest(partialFile(cache, file), client, commit, file, options);
  await withLock(lock, { signal, onWait }, async () => {
    if (await cache.holdsBlob(file.hash)) return;
    await mkdir(dirname(cache.blob(file.hash)), { recursive: true });
    await patiently(attempt, { retries: RETRIES, retryDelayMs, signal, onProgress });
    await rename(partialFile(cache, file), cache.blob(file.hash));
  });
}

export async function partialBytes(cache: ModelCache, file: RemoteFile): Promise<number> {
  return sizeOf(partialFile(cache, file));
}

const partialFile = (cache: ModelCache, { hash }: RemoteFile) => `${cache.blob(hash)}.drmas.incomplete`;

const sizeOf = async (path: string) => (await statusOf(path))?.size ?? 0;

async function fetchRest(
  partial: string,
  client: HubClient,
  commit: string,
  file: RemoteFile,
  { signal, onBytes }: BlobDownloadOptions,
): Promise<void> {
  let here = await sizeOf(partial);
  onBytes(here);
  const counted = async function* () {
    for await (const chunk of client.read(commit, file.name, here)) {
      if (here + chunk.length > file.bytes)
        throw new HubError(
          'damaged',
          `${file.name}: the server sends more than the ${file.bytes} bytes that it announced`,
        );
      yield chunk;
      here += chunk.length;
      onBytes(here);
    }
  };
  if (here < file.bytes) {
    await pipeline(counted, createWriteStream(partial, { flags: 'a' }), { signal });
    await nodeFiles.flush(partial);
  } else if (here === 0) await writeFile(partial, ''); // an empty file has no bytes to ask for
  if (here < file.bytes)
    throw new HubError('unreachable', `${file.name}: the connection ended after ${here} of ${file.bytes} bytes`);
  const actual = here === file.bytes ? await hashOf(partial, file) : `${here} bytes instead of ${file.bytes}`;
  if (actual === file.hash) return;
  await rm(partial);
  throw new HubError('damaged', `${file.name}: expected contents with the hash ${file.hash}, got ${actual}`);
}

/** A file's hash: SHA-256, or git's hash, which is SHA-1 of size and contents. */
export async function hashOf(path: string, { bytes, hash }: Pick<RemoteFile, 'bytes' | 'hash'>): Promise<string> {
  const state = hash.length === 64 ? createHash('sha256') : createHash('sha1').update(`blob ${bytes}\0`);
  for await (const chunk of createReadStream(path)) state.update(chunk);
  return state.digest('hex');
}

/** Turns an error of the file system into a HubError. Returns other errors unchanged. */
export function diskError(error: unknown, directory: string): unknown {
  if (!(error instanceof Error && 'syscall' in error)) return error;
  return new HubError('disk', `the cache of models in ${directory} cannot be written: ${messageOf(error)}`);
}

// A lock file: one process does some work, the others wait for it.

interface LockOptions {
  readonly signal: AbortSignal;
  /** Called once if another process holds the lock. */
  readonly onWait: () => void;
  /** The interval at which the holder touches the lock and the others check it. */
  readonly beatMs?: number;
}

/** If a lock was not touched for this many intervals, its process has died. */
const DEAD_AFTER = 20;

/**
 * Runs `work` while holding the file `path`. It takes over the lock of a process that died: such a lock no longer
 * changes. Clocks of other machines are not compared. During a take-over two processes may hold the lock for a moment,
 * so `work` must check its result.
 */
export async function withLock<T>(path: string, options: LockOptions, work: () => Promise<T>): Promise<T> {
  const { signal, beatMs = 500 } = options;
  await mkdir(dirname(path), { recursive: true });
  await take(path, { ...options, beatMs });
  const beat = setInterval(() => void utimes(path, new Date(), new Date()).catch(() => {}), beatMs);
  try {
    signal.throwIfAborted();
    return await work();
  } finally {
    clearInterval(beat);
    await rm(path, { force: true });
  }
}

async function take(path: string, { signal, onWait, beatMs }: Required<LockOptions>): Promise<void> {
  let seen: number | undefined;
  let quiet = 0;
  for (let waited = 0; !(await create(path)); waited++) {
    if (waited === 0) onWait();
    const touched = (await statusOf(path))?.mtimeMs;
    quiet = touched === seen ? quiet + 1 : 0;
    seen = touched;
    if (quiet >= DEAD_AFTER) await rm(path, { force: true });
    else await sleep(beatMs, undefined, { signal });
  }
}

async function create(path: string): Promise<boolean> {
  try {
    await (await open(path, 'wx')).close();
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  }
}

interface Patience {
  readonly retries: number;
  readonly retryDelayMs: number;
  readonly signal: AbortSignal;
  /** Whether to wait as long as a busy hub asks. Default: true. */
  readonly heeds?: boolean;
  readonly onProgress?: ((message: string) => void) | undefined;
}

/**
 * Repeats work that failed, if another attempt may succeed.
 * @throws the last failure, or the signal's reason
 */
export function patiently<T>(
  ask: () => Promise<T>,
  { retries, retryDelayMs, signal, heeds = true, onProgress = () => {} }: Patience,
): Promise<T> {
  const another = new Set<HubError['reason']>(['unreachable', 'damaged']);
  return pRetry(ask, {
    retries,
    minTimeout: retryDelayMs,
    signal,
    onFailedAttempt: async (failed) => {
      const { message, waitMs } = failed.error as Error & { readonly waitMs?: number };
      if (!heeds || waitMs === undefined || failed.retriesLeft === 0) return;
      onProgress(`${message}; asking again in ${Math.ceil(waitMs / 1000)} s, as it wishes`);
      await askedWait(failed, signal);
    },
    shouldRetry: ({ error }) =>
      error instanceof HubError && another.has(error.reason) && !(error.cause instanceof AnswerError),
  });
}
