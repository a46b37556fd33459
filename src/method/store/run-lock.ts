import { lstatSync, readdirSync, realpathSync, type Stats } from 'node:fs';
import { hostname } from 'node:os';
import { basename, join, relative, sep } from 'node:path';
import { jsonOf } from '@drmas/engine/disk';
import { messageOf, RunError } from '@drmas/engine/errors';
import { type Files, systemClock } from '@drmas/engine/host';
import { z } from 'zod';

/** The file that locks a run's directory. A process holds the lock; the file itself stays and locks nothing. */
export const LOCK = 'lock';

const holderSchema = z.object({ pid: z.int(), host: z.string(), since: z.string() });

export interface RunLock {
  /** A message for the user if the system has no locks. */
  readonly unguarded?: string;
  release(): Promise<void>;
}

/**
 * Locks a run's directory.
 * @throws RunError with the process that holds the lock, or if the directory is read-only or has a link out of it
 */
export async function lockRun(files: Files, path: string): Promise<RunLock> {
  requireOwnFiles(path);
  const holder = { pid: process.pid, host: hostname(), since: systemClock.now().toISOString() };
  const lock = await files.lock(join(path, LOCK), `${JSON.stringify(holder)}\n`).catch((error: unknown) => {
    throw new RunError(`the run directory ${path} cannot be written: ${messageOf(error)}`);
  });
  if (lock.type === 'held') return lock;
  if (lock.type === 'taken') throw new RunError(`${path} is being written by ${holderText(lock.note)}`);
  const unguarded = `nothing keeps a second process from writing to ${basename(path)}: ${lock.reason}`;
  return { unguarded, release: async () => {} };
}

/** The process in the lock's note: it writes the run, or was the last to write it. */
export type LockHolder = z.output<typeof holderSchema>;

/**
 * Reads the last writer of a run from the lock's note, without taking the lock. Undefined if the note does not tell.
 */
export async function lockHolder(files: Files, path: string): Promise<LockHolder | undefined> {
  const note = await files.readText(join(path, LOCK)).catch(() => '');
  return holderSchema.safeParse(jsonOf(note)).data;
}

/**
 * Requires that no symbolic link leads out of a directory: a directory of somebody else could have drmas read or write
 * a file of this user. The directory itself may be a link.
 * @param names The files and folders of the directory that are looked at. Default: all
 * @throws RunError with the link
 */
export function requireOwnFiles(directory: string, names?: readonly string[]): void {
  const root = realPath(directory);
  if (root === undefined) return; // it does not exist yet, or is in memory
  for (const path of names?.map((name) => join(root, name)) ?? [root]) requireInside(path, root, directory);
}

function requireInside(path: string, root: string, directory: string): void {
  const entry = entryAt(path);
  if (entry?.isDirectory()) for (const name of namesIn(path)) requireInside(join(path, name), root, directory);
  if (!entry?.isSymbolicLink()) return;
  const target = realPath(path);
  if (target?.startsWith(root + sep)) return;
  const where = target === undefined ? 'leads nowhere' : `leads out of ${directory}`;
  throw new RunError(
    `${join(directory, relative(root, path))} is a link that ${where}; drmas reads and writes nothing there: ` +
      'replace it by the file or folder itself',
  );
}

/** Undefined if it is gone, or if the directory is a file: what reads it says so. */
function entryAt(path: string): Stats | undefined {
  try {
    return lstatSync(path);
  } catch {
    return undefined;
  }
}

function namesIn(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return []; // it is gone, or nobody may read it: what reads it says so
  }
}

/** Asked at once: a run in memory, on a virtual clock, must not wait for the disk of this machine. */
function realPath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

function holderText(note: string): string {
  const readers = 'report, runs, inspect, evaluate and export may read it in the meantime';
  const { data } = holderSchema.safeParse(jsonOf(note));
  if (data === undefined) return `another process; wait until it has ended (${readers})`;
  const { pid, host, since } = data;
  const where = host === hostname() ? 'this machine' : `the host ${host}`;
  const who = host === hostname() && pid === process.pid ? 'this process itself' : `process ${pid} on ${where}`;
  return `${who}, since ${since}; wait until it has ended, or end it first (${readers})`;
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0); // sends nothing, and fails if there is no such process
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}
