import { join } from 'node:path';
import { reasonOf } from '../core/errors.js';
import type { Files, SharedDirectories } from '../core/files.js';
import { cacheDirectory, removeStale } from '../platform/cache-directory.js';
import { codeOf, TEMPORARY, temporaryName } from '../platform/node-files.js';
import { sealState, writeSealedDirectory } from './digests.js';

const KIND = 'warmstarts';

/** The cache of warm starts: directories, each named by the hash of the values that it was computed from. */
export class DirectoryCache {
  readonly #files: Files;
  readonly #root: string;
  readonly #shared: SharedDirectories | undefined;

  constructor(
    files: Files,
    { root = cacheDirectory(), shared }: { root?: string; shared?: SharedDirectories | undefined } = {},
  ) {
    this.#files = files;
    this.#root = join(root, KIND);
    this.#shared = shared;
  }

  /** The directory stored under `hash`, if it is there and as it was written. Nothing is touched. */
  async look(hash: string): Promise<string | undefined> {
    const directory = join(this.#root, hash);
    if (!(await this.#files.exists(directory))) return undefined;
    return (await sealState(this.#files, directory)).type === 'whole' ? directory : undefined;
  }

  /**
   * The directory stored under `hash`, if there is one; it is always complete and as it was written. One that is not is
   * removed, so that it can be made again. What is not here is fetched from the other machines.
   */
  async find(hash: string, onDamage: (why: string) => void = () => {}): Promise<string | undefined> {
    const directory = join(this.#root, hash);
    if (!(await this.#files.exists(directory))) return this.#fetch(hash, onDamage);
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

  async #fetch(hash: string, onDamage: (why: string) => void): Promise<string | undefined> {
    if (this.#shared === undefined) return undefined;
    const directory = join(this.#root, hash);
    const temporary = join(this.#root, temporaryName(hash));
    try {
      if (!(await this.#shared.fetch(`${KIND}/${hash}`, temporary))) return undefined;
      const state = await sealState(this.#files, temporary);
      if (state.type === 'damaged') onDamage(state.why);
      if (state.type !== 'whole') return undefined;
      await this.#files.rename(temporary, directory);
      return directory;
    } catch (error) {
      if (codeOf(error) === 'EEXIST') return this.look(hash); // another process was faster
      onDamage(reasonOf(error));
      return undefined;
    } finally {
      await this.#files.remove(temporary);
    }
  }

  /**
   * Stores the files that `fill` writes, here and for other machines. Where another process was faster, its result
   * stays: equal hashes, equal content.
   */
  async store(hash: string, fill: (directory: string) => Promise<void>): Promise<string> {
    await this.#files.makeDirectory(this.#root);
    await removeStale(this.#files, this.#root, TEMPORARY);
    try {
      const directory = await writeSealedDirectory(this.#files, this.#root, hash, fill);
      await this.#shared?.publish(`${KIND}/${hash}`, directory);
      return directory;
    } catch (error) {
      const other = codeOf(error) === 'EEXIST' ? await this.find(hash) : undefined;
      if (other === undefined) throw error;
      return other;
    }
  }
}
