/** The place of the flag `--store`. */

import { copyFile, open, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { reasonOf, StoreError } from '@drmas/engine/errors';
import { codeOf, flushDirectory, flushOpen, nodeFiles, TEMPORARY, temporaryName } from '@drmas/engine/platform';
import { checkObjects, type ObjectStore } from './object-store.js';
import { S3Objects, s3Place } from './s3-objects.js';

/**
 * Opens a folder, or `s3://bucket/prefix`, and checks that it can be used.
 * @throws RecipeError when the address is wrong, or the S3 client is not installed; StoreError when the place cannot be
 * written and read
 */
export async function openObjects(place: string, environment: NodeJS.ProcessEnv = process.env): Promise<ObjectStore> {
  const s3 = s3Place(place);
  const objects = s3 === undefined ? new FolderObjects(resolve(place)) : await S3Objects.open(s3, { environment });
  await checkObjects(objects);
  return objects;
}

// A folder as an object store: names are paths in it.

export class FolderObjects implements ObjectStore {
  readonly place: string;
  readonly isFolder = true;

  /** @param place The folder's path; made if it does not exist */
  constructor(place: string) {
    this.place = place;
  }

  put(name: string, path: string): Promise<void> {
    return this.#attempt(`cannot write ${name}`, async () => {
      const target = join(this.place, name);
      const folder = dirname(target);
      await nodeFiles.makeDirectory(folder);
      const temporary = join(folder, temporaryName(basename(name)));
      try {
        await copyFile(path, temporary);
        const file = await open(temporary, 'r+');
        await flushOpen(file).finally(() => file.close());
        await rename(temporary, target);
      } catch (error) {
        await rm(temporary, { force: true });
        throw error;
      }
      await flushDirectory(folder);
    });
  }

  get(name: string, path: string): Promise<void> {
    return this.#attempt(`cannot read ${name}`, () => copyFile(join(this.place, name), path));
  }

  list(prefix: string): Promise<string[]> {
    return this.#attempt(`cannot list ${prefix}`, async () => {
      const entries = await readdir(join(this.place, prefix), { recursive: true, withFileTypes: true }).catch(
        (error: unknown) => {
          if (codeOf(error) === 'ENOENT') return [];
          throw error;
        },
      );
      return entries
        .filter((entry) => entry.isFile() && !entry.name.startsWith(TEMPORARY))
        .map((entry) => join(entry.parentPath, entry.name).slice(join(this.place, '/').length))
        .sort();
    });
  }

  remove(name: string): Promise<void> {
    return this.#attempt(`cannot remove ${name}`, () => rm(join(this.place, name), { force: true }));
  }

  async #attempt<Result>(what: string, act: () => Promise<Result>): Promise<Result> {
    try {
      return await act();
    } catch (error) {
      const reason = codeOf(error) === 'ENOENT' ? 'missing' : codeOf(error) === 'EACCES' ? 'denied' : 'unreachable';
      throw new StoreError(reason, `${this.place}: ${what}: ${reasonOf(error)}`);
    }
  }
}
