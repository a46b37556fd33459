/** Files by name in a place that many machines reach: a folder that they share, or storage with S3's interface. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StoreError } from '../../core/errors.js';

/** Each file is there whole or not at all, as it was or as it shall be, whatever becomes of who writes it. */
export interface ObjectStore {
  /** The place as people write it. */
  readonly place: string;
  /** Whether caches may lie in the place itself, as in a folder. */
  readonly isFolder: boolean;
  /** Stores the file at `path` under a name with slashes, in place of what had that name. */
  put(name: string, path: string): Promise<void>;
  /** Writes what is stored under a name to `path`, whose folder is there. */
  get(name: string, path: string): Promise<void>;
  /** The names that begin with `prefix`, which ends with a slash; sorted. */
  list(prefix: string): Promise<string[]>;
  /** Removes what has a name, if there is something. */
  remove(name: string): Promise<void>;
}

const PROBE = 'probe';

/**
 * Writes, lists, reads and removes a file of a few bytes, so that a place which cannot be used is known before work
 * begins.
 * @throws StoreError naming what is wrong
 */
export async function checkObjects(objects: ObjectStore): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'drmas-store-'));
  const [there, back] = [join(directory, 'there'), join(directory, 'back')];
  const name = `${PROBE}/${directory.slice(-6)}`;
  try {
    await writeFile(there, name);
    await objects.put(name, there);
    const isListed = (await objects.list(`${PROBE}/`)).includes(name);
    await objects.get(name, back);
    await objects.remove(name);
    if (!isListed || (await readFile(back, 'utf8')) !== name)
      throw new StoreError('damaged', `${objects.place} does not give back what was written to it`);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
