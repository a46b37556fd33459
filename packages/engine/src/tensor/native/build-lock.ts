/** One build at a time in a directory of the cache: processes that start at once share one build. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { nodeFiles } from '../../platform.js';
import { waitingProgress } from './build-progress.js';

const LOCK = 'lock';
const RETRY_MS = 200;

/**
 * Does the work while no other process builds in the directory. The operating system releases the lock when its holder
 * ends, however it ends. Without locks (some network file systems) the work is done at once: files are moved into place
 * when they are complete, so two builds disturb each other only by doing the work twice.
 */
export async function aloneIn<T>(
  directory: string,
  onProgress: ((message: string) => void) | undefined,
  work: () => Promise<T>,
): Promise<T> {
  await mkdir(directory, { recursive: true });
  let endWaiting: (() => void) | undefined;
  try {
    for (;;) {
      const lock = await nodeFiles.lock(join(directory, LOCK), `process ${process.pid}`);
      if (lock.type === 'taken') {
        endWaiting ??= waitingProgress(lock.note, onProgress);
        await setTimeout(RETRY_MS);
        continue;
      }
      endWaiting?.();
      endWaiting = undefined;
      try {
        return await work();
      } finally {
        if (lock.type === 'held') await lock.release();
      }
    }
  } finally {
    endWaiting?.();
  }
}
