/**
 * The cache of downloaded models and data sets, laid out as `huggingface_hub` does, so that every library on the
 * machine shares it: `models--org--name/` or `datasets--org--name/` holds `blobs/<hash>` (the files),
 * `snapshots/<commit>/<file>` (links to them) and `refs/<revision>` (the commit of a branch or tag at the last
 * request).
 */
import { randomUUID } from 'node:crypto';
import * as files from 'node:fs/promises';
import { copyFile, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { codeOf, homeDirectory } from '../platform.js';
import type { ModelId } from './model-id.js';

/** Error codes if the file system has no symbolic links or the user must not make them. */
const NO_LINKS = new Set([
  'EPERM',
  'EACCES',
  'ENOSYS',
  'ENOTSUP',
  'EOPNOTSUPP',
  'EINVAL',
  'UNKNOWN',
  'ERR_ACCESS_DENIED', // of Node's permission model, unless all files may be read and written
]);

export const COMMIT = /^[0-9a-f]{40}$/;

/** HF_HUB_CACHE, else HUGGINGFACE_HUB_CACHE, else `hub` below HF_HOME, else below the user's cache directory. */
export function cacheRoot(environment: NodeJS.ProcessEnv): string {
  const { HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME, XDG_CACHE_HOME } = environment;
  const home = HF_HOME || join(XDG_CACHE_HOME || join(homeDirectory(), '.cache'), 'huggingface');
  return expandHome(HF_HUB_CACHE || HUGGINGFACE_HUB_CACHE || join(home, 'hub'));
}

/** `~` and `~/x` are below the user's home directory, as shells have it. */
export function expandHome(path: string): string {
  return path.replace(/^~(?=\/|$)/, homeDirectory());
}

export class ModelCache {
  readonly directory: string;
  readonly #names: Pick<typeof files, 'symlink' | 'link'>;

  /** @param names The calls that make links. Default: the system's. */
  constructor(root: string, { name, type }: ModelId, names: Pick<typeof files, 'symlink' | 'link'> = files) {
    this.#names = names;
    this.directory = join(root, `${type ?? 'model'}s--${name.replace('/', '--')}`);
  }

  blob(hash: string): string {
    return join(this.directory, 'blobs', hash);
  }

  snapshot(commit: string): string {
    return join(this.directory, 'snapshots', commit);
  }

  /** The commit that the revision was when it was last downloaded; undefined if it never was. */
  async commitOf(revision: string): Promise<string | undefined> {
    if (COMMIT.test(revision)) return revision;
    const text = await readFile(join(this.directory, 'refs', revision), 'utf8').catch(() => '');
    return COMMIT.test(text.trim()) ? text.trim() : undefined;
  }

  async rememberCommit(revision: string, commit: string): Promise<void> {
    if ((await this.commitOf(revision)) === commit) return;
    await replace(join(this.directory, 'refs', revision), (temporary) => writeFile(temporary, commit));
  }

  /**
   * Makes a file of a snapshot link to an existing blob. If symbolic links are not allowed, as for many users of
   * Windows, it makes a hard link, or a copy if the file system has no hard links.
   */
  async link(commit: string, file: string, hash: string): Promise<void> {
    const path = join(this.snapshot(commit), file);
    const blob = this.blob(hash);
    await replace(path, async (temporary) => {
      try {
        await this.#names.symlink(relative(dirname(path), blob), temporary);
      } catch (error) {
        if (!NO_LINKS.has(codeOf(error) ?? '')) throw error;
        await this.#names.link(blob, temporary).catch(() => copyFile(blob, temporary));
      }
    });
  }

  /** The files of a snapshot whose blobs exist, by their paths in the repository. */
  async files(commit: string): Promise<ReadonlySet<string>> {
    const names = await readdir(this.snapshot(commit), { recursive: true }).catch(() => []);
    const present = new Set<string>();
    for (const name of names)
      if ((await statusOf(join(this.snapshot(commit), name)))?.isFile()) present.add(name.split(sep).join('/'));
    return present;
  }

  /** The list of a commit's files that `rememberListing` kept, as text. Undefined if there is none. */
  listing(commit: string): Promise<string | undefined> {
    return readFile(this.#listing(commit), 'utf8').catch(() => undefined);
  }

  /** Keeps the list of a commit's files, so that no request is needed the next time. */
  async rememberListing(commit: string, text: string): Promise<void> {
    await replace(this.#listing(commit), (temporary) => writeFile(temporary, text));
  }

  #listing(commit: string): string {
    return join(this.directory, '.drmas', `${commit}.json`);
  }

  async holdsBlob(hash: string): Promise<boolean> {
    return (await statusOf(this.blob(hash))) !== undefined;
  }
}

/** A path that cannot be read counts as missing. The download that follows then reports the reason. */
export const statusOf = (path: string) => stat(path).catch(() => undefined);

/** Replaces `path` in one atomic step. Other processes may do so at the same time. */
async function replace(path: string, make: (temporary: string) => Promise<void>): Promise<void> {
  const temporary = `${path}.${randomUUID()}`;
  await mkdir(dirname(path), { recursive: true });
  try {
    await make(temporary);
    await rename(temporary, path);
  } finally {
    await rm(temporary, { force: true });
  }
}
