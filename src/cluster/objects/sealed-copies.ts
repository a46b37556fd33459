/** Directories in an object store, each complete or ignored: the file that seals a directory comes last. */
import { dirname, join } from 'node:path';
import { filesBelow, SEAL } from '@drmas/engine/disk';
import { StoreError } from '@drmas/engine/errors';
import type { SharedDirectories } from '@drmas/engine/host';
import { nodeFiles } from '@drmas/engine/platform';
import pLimit from 'p-limit';
import { timeStamp } from '../../method/store.js';
import type { ObjectStore } from './object-store.js';

/** Files that are sent or fetched concurrently. */
const AT_ONCE = 4;

/** A name that no other process uses. Names sort by time. */
export function writerName(): string {
  return `${timeStamp(new Date())}-${Math.floor(Math.random() * 36 ** 6).toString(36)}`;
}

export async function sendFiles(objects: ObjectStore, prefix: string, from: string, names: readonly string[]) {
  await pLimit(AT_ONCE).map(names, (name) => objects.put(`${prefix}${name}`, join(from, name)));
}

/** Fetches files into a directory. @throws StoreError for a name that would be outside the directory */
export async function fetchFiles(objects: ObjectStore, prefix: string, names: readonly string[], into: string) {
  for (const name of names)
    if (name.split('/').some((word) => word === '..' || word === '') || name.includes('\\'))
      throw new StoreError('damaged', `${objects.place}: ${prefix}${name} is not a valid file name`);
  for (const folder of new Set(names.map((name) => dirname(join(into, name))))) await nodeFiles.makeDirectory(folder);
  await pLimit(AT_ONCE).map(names, (name) => objects.get(`${prefix}${name}`, join(into, name)));
}

/** Each writer has a unique name, so that writers do not mix files; a reader takes the first complete directory. */
export class SealedCopies implements SharedDirectories {
  readonly #objects: ObjectStore;

  constructor(objects: ObjectStore) {
    this.#objects = objects;
  }

  async publish(name: string, from: string): Promise<void> {
    const prefix = `${name}/${writerName()}/`;
    const files = await filesBelow(nodeFiles, from);
    await sendFiles(
      this.#objects,
      prefix,
      from,
      files.filter((file) => file !== SEAL),
    );
    await sendFiles(this.#objects, prefix, from, [SEAL]);
  }

  async fetch(name: string, into: string): Promise<boolean> {
    const names = await this.#objects.list(`${name}/`);
    const seal = names.find(
      (each) => each.endsWith(`/${SEAL}`) && each.split('/').length === name.split('/').length + 2,
    );
    if (seal === undefined) return false;
    const prefix = seal.slice(0, -SEAL.length);
    const files = names.flatMap((each) => (each.startsWith(prefix) ? [each.slice(prefix.length)] : []));
    await fetchFiles(this.#objects, prefix, files, into);
    return true;
  }
}
