import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { Files } from '../core/files.js';
import { codeOf } from '../platform/node-files.js';
import { cacheDirectory } from '../tensor/native/build-cache.js';
import { writeDirectory } from './write-directory.js';

/** The SHA-256 of a value's JSON with sorted keys, in 64 hexadecimal digits: equal values have equal hashes. */
export function contentHash(value: unknown): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex');
}

function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}

/** A cache of directories, each named by the hash of the values that it was computed from. */
export class DirectoryCache {
  readonly #files: Files;
  readonly #root: string;

  constructor(files: Files, kind: 'warmstarts', root = cacheDirectory()) {
    this.#files = files;
    this.#root = join(root, kind);
  }

  /** The directory stored under `hash`, if there is one; it is always complete. */
  async find(hash: string): Promise<string | undefined> {
    const directory = join(this.#root, hash);
    return (await this.#files.exists(directory)) ? directory : undefined;
  }

  /**
   * Stores the files that `fill` writes. Where another process was faster, its result stays: equal hashes, equal
   * content.
   */
  async store(hash: string, fill: (directory: string) => Promise<void>): Promise<string> {
    await this.#files.makeDirectory(this.#root);
    try {
      return await writeDirectory(this.#files, this.#root, hash, fill);
    } catch (error) {
      const other = codeOf(error) === 'EEXIST' ? await this.find(hash) : undefined;
      if (other === undefined) throw error;
      return other;
    }
  }
}
