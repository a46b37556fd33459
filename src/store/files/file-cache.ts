import { join } from 'node:path';
import type { Files } from '../../core/files.js';
import { codeOf, TEMPORARY, temporaryName } from '../../platform/node-files.js';
import { removeStale } from '../../platform/stale.js';
import { cacheDirectory } from '../../tensor/native/build-cache.js';
import { sealState, writeSealedDirectory } from './digests.js';

/** A cache of directories, each named by the hash of the values that it was computed from. */
export class DirectoryCache {
  readonly #files: Files;
  readonly #root: string;

  constructor(files: Files, kind: 'warmstarts', root = cacheDirectory()) {
    this.#files = files;
    this.#root = join(root, kind);
  }

  /** The directory stored under `hash`, if it is there and as it was written. Nothing is touched. */
  async look(hash: string): Promise<string | undefined> {
    const directory = join(this.#root, hash);
    if (!(await this.#files.exists(directory))) return undefined;
    return (await sealState(this.#files, directory)).type === 'whole' ? directory : undefined;
  }

  /**
   * The directory stored under `hash`, if there is one; it is always complete and as it was written. One that is not is
   * removed, so that it can be made again.
   */
  async find(hash: string, onDamage: (why: string) => void = () => {}): Promise<string | undefined> {
    const directory = join(this.#root, hash);
    if (!(await this.#files.exists(directory))) return undefined;
    const state = await sealState(this.#files, directory);
    if (state.type === 'whole') return directory;
    onDamage(state.type === 'damaged' ? state.why : `${directory} was written by a version without digests`);
    const aside = join(this.#root, temporaryName(hash)); // no process sees half of it
    try {
      await this.#files.rename(directory, aside);
      await this.#files.remove(aside);
    } catch {
      // Another process was faster, or nothing can be written: then it is made again in any case.
    }
    return undefined;
  }

  /**
   * Stores the files that `fill` writes. Where another process was faster, its result stays: equal hashes, equal
   * content.
   */
  async store(hash: string, fill: (directory: string) => Promise<void>): Promise<string> {
    await this.#files.makeDirectory(this.#root);
    await removeStale(this.#files, this.#root, TEMPORARY);
    try {
      return await writeSealedDirectory(this.#files, this.#root, hash, fill);
    } catch (error) {
      const other = codeOf(error) === 'EEXIST' ? await this.find(hash) : undefined;
      if (other === undefined) throw error;
      return other;
    }
  }
}
