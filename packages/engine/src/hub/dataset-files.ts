/** The files of a data set on a hub, in the cache that models share. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { jsonOf } from '../disk.js';
import { HubError } from '../errors.js';
import { diskError, hashOf, patiently } from './blob-download.js';
import { type HubClient, hubClient } from './hub-client.js';
import { COMMIT, cacheRoot, ModelCache } from './model-cache.js';
import {
  askedCommit,
  type DownloadContext,
  type DownloadOptions,
  downloadContext,
  downloadFiles,
  isOffline,
  patience,
} from './model-directory.js';
import { formatModelId, type ModelId, parseModelId } from './model-id.js';

export interface DatasetOptions extends DownloadOptions {
  /** The commit to take, even if the revision means another one now. */
  readonly commit?: string | undefined;
}

export interface DatasetFile {
  /** Its path in the repository. */
  readonly name: string;
  /** Its path on this machine. */
  readonly path: string;
  /** SHA-256 of its contents, hexadecimal. */
  readonly sha256: string;
}

export interface Dataset {
  readonly commit: string;
  readonly files: readonly DatasetFile[];
}

const listingSchema = z.array(
  z.object({ name: z.string(), bytes: z.int().min(0), hash: z.string().regex(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/) }),
);

/** The files of a commit. Without hashes if only the cache knows them. */
type Listing = readonly { readonly name: string; readonly bytes?: number; readonly hash?: string }[];

/**
 * The name of a data set on a hub. Undefined if the text is no such name.
 * @throws CheckpointError when the revision cannot be one
 */
export function parseDatasetId(name: string, revision: string): ModelId | undefined {
  const id = name.includes('@') ? undefined : parseModelId(`${name}@${revision}`);
  return id && { ...id, type: 'dataset' };
}

/**
 * Finds files of a data set: in the cache, else on the hub, which the user asked for by the name. Without a network, or
 * with HF_HUB_OFFLINE=1, only the cache is used. The contents of each file are compared with the hash of the hub's
 * list.
 * @param choose Chooses among the paths of all files of the repository; its errors are passed on
 * @throws HubError if a file can neither be found nor downloaded, or was changed; the signal's reason
 */
export async function datasetFiles(
  named: ModelId,
  choose: (names: readonly string[]) => readonly string[],
  { commit: pinned, ...options }: DatasetOptions = {},
): Promise<Dataset> {
  const id = { ...named, revision: pinned ?? named.revision };
  const context = downloadContext(options);
  const cache = new ModelCache(cacheRoot(context.environment), id);
  try {
    const hub = isOffline(context.environment) ? offline(id) : hubClient(id, context.environment, context.signal);
    const commit = await commitOf(cache, hub, id, context);
    const listing = await listingOf(cache, hub, commit, id, context);
    const names = choose(listing.map(({ name }) => name));
    const chosen = listing.filter(({ name }) => names.includes(name));
    await fetchMissing(cache, hub, commit, chosen, id, context);
    const files: DatasetFile[] = [];
    for (const file of chosen) files.push(await checkedFile(cache, commit, file));
    return { commit, files };
  } catch (error) {
    context.signal.throwIfAborted();
    throw diskError(error, cache.directory);
  }
}

/** A client that refuses all requests. */
function offline(id: ModelId): HubClient {
  const refuse = async (): Promise<never> => {
    throw new HubError('offline', `${formatModelId(id)}: HF_HUB_OFFLINE is set`);
  };
  return {
    commit: refuse,
    files: refuse,
    read: async function* () {
      yield await refuse();
    },
  };
}

const isOutOfReach = (error: unknown): error is HubError =>
  error instanceof HubError && (error.reason === 'unreachable' || error.reason === 'offline');

/** The commit of the revision: from the hub, else as it was at the last request. A commit needs no request. */
async function commitOf(cache: ModelCache, hub: HubClient, id: ModelId, context: DownloadContext): Promise<string> {
  if (COMMIT.test(id.revision)) return id.revision;
  try {
    const commit = await askedCommit(cache, hub, id, context);
    await cache.rememberCommit(id.revision, commit);
    return commit;
  } catch (error) {
    if (!isOutOfReach(error)) throw error;
    const commit = await cache.commitOf(id.revision);
    if (commit === undefined) throw lacks(cache, error, `revision "${id.revision}"`);
    if (error.reason === 'unreachable')
      context.onProgress(`${error.message}; taking ${formatModelId(id)} as it was last downloaded (${commit}).`);
    return commit;
  }
}

const lacks = (cache: ModelCache, { reason, message }: HubError, what: string) =>
  new HubError(reason, `${message}; and ${cache.directory} lacks ${what}`);

/** The files of a commit: as they were listed before, else from the hub, else those that other programs downloaded. */
async function listingOf(
  cache: ModelCache,
  hub: HubClient,
  commit: string,
  id: ModelId,
  context: DownloadContext,
): Promise<Listing> {
  const kept = listingSchema.safeParse(jsonOf((await cache.listing(commit)) ?? ''));
  if (kept.success) return kept.data;
  try {
    const files = await patiently(() => hub.files(commit), patience(context));
    await cache.rememberListing(commit, JSON.stringify(files));
    return files;
  } catch (error) {
    if (!isOutOfReach(error)) throw error;
    const names = [...(await cache.files(commit))].sort();
    if (names.length === 0) throw lacks(cache, error, `files of the commit ${commit}`);
    const gap = missingPart(names);
    if (gap !== undefined) throw lacks(cache, error, `${gap} of ${id.name}`);
    return names.map((name) => ({ name }));
  }
}

/** The first part of a file in several parts (`train-00001-of-00003.parquet`) that a list lacks. */
function missingPart(names: readonly string[]): string | undefined {
  for (const name of names) {
    const [, head, count = '0', tail] = /^(.*-)\d{5}(?=-of-(\d{5})(.*)$)/.exec(name) ?? [];
    for (let part = 0; part < Number(count); part++) {
      const other = `${head}${String(part).padStart(5, '0')}-of-${count}${tail}`;
      if (!names.includes(other)) return other;
    }
  }
  return undefined;
}

async function fetchMissing(
  cache: ModelCache,
  hub: HubClient,
  commit: string,
  chosen: Listing,
  id: ModelId,
  context: DownloadContext,
): Promise<void> {
  const here = await cache.files(commit);
  const missing = chosen.flatMap(({ name, bytes, hash }) =>
    here.has(name) || bytes === undefined || hash === undefined ? [] : [{ name, bytes, hash }],
  );
  if (missing.length === 0) return;
  await downloadFiles(cache, hub, commit, missing, id, context).catch((error: unknown) => {
    throw isOutOfReach(error) ? lacks(cache, error, (missing[0] as { name: string }).name) : error;
  });
}

/** @throws HubError if the contents differ from the hub's list */
async function checkedFile(cache: ModelCache, commit: string, { name, hash }: Listing[number]): Promise<DatasetFile> {
  const path = join(cache.snapshot(commit), ...name.split('/'));
  const { size: bytes } = await stat(path);
  const sha256 = await hashOf(path, { bytes, hash: '0'.repeat(64) });
  const actual = hash === undefined || hash.length === 64 ? sha256 : await hashOf(path, { bytes, hash });
  if (hash !== undefined && actual !== hash)
    throw new HubError(
      'damaged',
      `${path} has changed since it was downloaded (its hash is ${actual}, not ${hash}): delete it and ${cache.blob(hash)}, and drmas downloads it again`,
    );
  return { name, path, sha256 };
}
