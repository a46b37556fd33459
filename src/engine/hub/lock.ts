/** A lock file: one process does some work, the others wait for it. */
import { mkdir, open, rm, stat, utimes } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

export interface LockOptions {
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
