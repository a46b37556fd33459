import { readdirSync, realpathSync } from 'node:fs';
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
 * Requires that no symbolic link leads out of a directory: a directory of somebody else could have drmas write to a
 * file of this user. The directory itself may be a link.
 * @throws RunError with the link
 */
export function requireOwnFiles(directory: string): void {
  const root = realPath(directory);
  if (root === undefined) return; // it does not exist yet, or is in memory
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    if (!entry.isSymbolicLink()) continue;
    const link = join(entry.parentPath, entry.name);
    const target = realPath(link);
    if (target === undefined || !target.startsWith(root + sep))
      throw new RunError(
        `${join(directory, relative(root, link))} is a link that leads out of ${directory}, and drmas would write ` +
          'there; replace it by the file or folder itself',
      );
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
