/**
 * A folder in memory for the temporary files of the daily tests. Runs flush each of their files, and a test deletes
 * all of them at its end: on a busy disk a file takes 5 ms for that, in memory 0.02 ms.
 */
import { mkdtempSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { nodeFiles, removeStale } from '@drmas/engine/platform';

const MOUNT = '/dev/shm';
const PREFIX = 'drmas-tests-';
const LEAST_BYTES = 4e9;

/**
 * Makes such a folder the place of temporary files of this process, and of those that it starts. Does nothing if
 * TMPDIR names another place, or if the system has no such memory with enough room that programs may run in.
 * @returns a function that deletes the folder
 */
export async function useMemoryFolder(environment = process.env): Promise<() => void> {
  if (environment.TMPDIR !== undefined || !canHoldFiles()) return () => {};
  await removeStale(nodeFiles, MOUNT, PREFIX); // of tests that were killed
  const folder = mkdtempSync(join(MOUNT, PREFIX));
  environment.TMPDIR = folder;
  const remove = () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }); // workers may still write
  process.once('exit', remove); // Ctrl-C ends Vitest without the teardown
  return remove;
}

function canHoldFiles(): boolean {
  try {
    const mount = /^\S+ \/dev\/shm \S+ (\S+)/m.exec(readFileSync('/proc/mounts', 'utf8'));
    const options = mount?.[1]?.split(',') ?? [];
    const { bavail, bsize } = statfsSync(MOUNT);
    return options.includes('rw') && !options.includes('noexec') && bavail * bsize >= LEAST_BYTES;
  } catch {
    return false; // another system than Linux
  }
}
