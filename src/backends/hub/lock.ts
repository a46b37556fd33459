/** One process at a time does a thing; the others wait for it. */
import { mkdir, open, rm, stat, utimes } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

export interface LockOptions {
  readonly signal: AbortSignal;
  /** Called once, when somebody else holds the lock. */
  readonly onWait: () => void;
  /** How often the holder touches the lock, and the others look at it. */
  readonly beatMs?: number;
}

/** A lock that was not touched for so many beats belongs to a process that died. */
const DEAD_AFTER = 20;

/**
 * Runs `work` while holding the file `path`. A lock left behind by a process that died is taken over; whether a lock
 * lives is judged by whether it changes, not by the clock of the machine that wrote it. In the instant of a take-over
 * two processes may both believe to hold it, so `work` must check its result.
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
    const touched = await stat(path).then(
      ({ mtimeMs }) => mtimeMs,
      () => undefined,
    );
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
