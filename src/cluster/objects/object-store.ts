/** Files by name in a place that many machines reach: a shared folder, or storage with S3's interface. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StoreError } from '@drmas/engine/errors';

/** A store of files. A write is atomic: a reader sees the old or the new file, even if the writer dies. */
export interface ObjectStore {
  readonly place: string;
  /** Whether caches may be in the place itself, as in a folder. */
  readonly isFolder: boolean;
  /** Stores the file at `path` under a name with slashes, and replaces an earlier file of that name. */
  put(name: string, path: string): Promise<void>;
  /** Writes the stored file to `path`, whose folder exists. */
  get(name: string, path: string): Promise<void>;
  /** The sorted names that begin with `prefix`, which ends with a slash. */
  list(prefix: string): Promise<string[]>;
  remove(name: string): Promise<void>;
}

const PROBE = 'probe';

/** To find an unusable place before the work begins. @throws StoreError with the reason */
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
      throw new StoreError('damaged', `${objects.place} returns other bytes than were written`);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
