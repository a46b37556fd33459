import { hostname } from 'node:os';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { systemClock } from '../core/clock.js';
import { messageOf, RunError } from '../core/errors.js';
import type { Files } from '../core/files.js';
import { jsonOf } from './files/digests.js';

/** The file by which a run's directory is locked. It stays: a process holds a lock, a file that is there does not. */
export const LOCK = 'lock';

const holderSchema = z.object({ pid: z.int(), host: z.string(), since: z.string() });

/** A run that this process alone writes. */
export interface RunLock {
  /** Why others are not kept away, where the system cannot. */
  readonly unguarded?: string;
  release(): Promise<void>;
}

/** Becomes the one writer of a run's directory. @throws RunError naming the process that is, or when it is read-only */
export async function lockRun(files: Files, path: string): Promise<RunLock> {
  const holder = { pid: process.pid, host: hostname(), since: systemClock.now().toISOString() };
  const lock = await files.lock(join(path, LOCK), `${JSON.stringify(holder)}\n`).catch((error: unknown) => {
    throw new RunError(`the run directory ${path} cannot be written: ${messageOf(error)}`);
  });
  if (lock.type === 'held') return lock;
  if (lock.type === 'taken') throw new RunError(`${path} is being written by ${holderText(lock.note)}`);
  const unguarded = `nothing keeps a second process from writing to ${basename(path)}: ${lock.reason}`;
  return { unguarded, release: async () => {} };
}

/** The process that writes a run, or wrote it last, as the note in its lock says. */
export type LockHolder = z.output<typeof holderSchema>;

/** Reads who wrote a run last; undefined where nothing says. The lock itself is not touched. */
export async function lockHolder(files: Files, path: string): Promise<LockHolder | undefined> {
  const note = await files.readText(join(path, LOCK)).catch(() => '');
  return holderSchema.safeParse(jsonOf(note)).data;
}

function holderText(note: string): string {
  const readers = 'report, runs, inspect, evaluate and export may read it meanwhile';
  const { data } = holderSchema.safeParse(jsonOf(note));
  if (data === undefined) return `another process; wait until it has ended (${readers})`;
  const { pid, host, since } = data;
  const where = host === hostname() ? 'this machine' : `the host ${host}`;
  const who = host === hostname() && pid === process.pid ? 'this process itself' : `process ${pid} on ${where}`;
  return `${who}, since ${since}; wait until it has ended, or end it first (${readers})`;
}
