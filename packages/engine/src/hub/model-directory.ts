/** The place of a model: a local directory or GGUF file of the user, or the model's directory in the cache of
 * downloads. */

import { readdir, readFile, statfs } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { CheckpointError, HubError } from '../errors.js';
import { byteText } from '../host.js';
import { isGguf } from '../model/formats/gguf/gguf-checkpoint.js';
import { describeModel } from '../model/formats/stored-model.js';
import { nodeFiles } from '../platform.js';
import { diskError, downloadBlob, partialBytes, patiently } from './blob-download.js';
import { type HubClient, hubClient, type RemoteFile } from './hub-client.js';
import { cacheRoot, expandHome, ModelCache, statusOf } from './model-cache.js';
import { INDEX, lacking, type NeededFiles, smallFiles, weightFiles } from './model-files.js';
import { formatModelId, looksLikePath, type ModelId, parseModelId } from './model-id.js';
import { isDigest, modelOnDisk } from './models-on-disk.js';

const BETWEEN_MESSAGES_MS = 5000;

/** Reports a download when it begins, and its progress every few seconds. */
export function progressOf(
  model: string,
  files: readonly RemoteFile[],
  tell: (message: string) => void,
): (file: RemoteFile, bytes: number) => void {
  const all = files.reduce((sum, { bytes }) => sum + bytes, 0);
  if (files.length > 0) tell(`Downloading ${model}: ${files.map(({ name }) => name).join(', ')} (${byteText(all)})`);
  const here = new Map<RemoteFile, number>();
  let lastMessage = performance.now();
  return (file, bytes) => {
    here.set(file, bytes);
    if (performance.now() - lastMessage < BETWEEN_MESSAGES_MS) return;
    lastMessage = performance.now();
    const sum = [...here.values()].reduce((a, b) => a + b, 0);
    tell(`Downloading ${model}: ${byteText(sum)} of ${byteText(all)} (${file.name})`);
  };
}

export interface DownloadOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((message: string) => void) | undefined;
  /** HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE, HF_HUB_CACHE and HF_HOME are read from it; by default the process's. */
  readonly environment?: NodeJS.ProcessEnv | undefined;
  /** Wait before the first repetition of a request that failed. */
  readonly retryDelayMs?: number | undefined;
}

export interface ModelDirectoryOptions extends DownloadOptions {
  /**
   * The files to download. Default `all`; `tokenizer` leaves the weights out, for a model that a server computes.
   */
  readonly files?: NeededFiles;
}

export interface DownloadContext {
  readonly signal: AbortSignal;
  readonly onProgress: (message: string) => void;
  readonly environment: NodeJS.ProcessEnv;
  readonly retryDelayMs: number;
}

export const downloadContext = ({
  signal = new AbortController().signal,
  onProgress = () => {},
  environment = process.env,
  retryDelayMs = 1000,
}: DownloadOptions): DownloadContext => ({ signal, onProgress, environment, retryDelayMs });

type Context = DownloadContext & { readonly files: NeededFiles };

/**
 * The directory or GGUF file of a model that is named by a path, by the name that Ollama or LM Studio has for it, or as
 * `org/name[@revision]` on a hub. A path that exists wins, then a model of those programs.
 * A name that begins like a path (`/`, `~`, `.`, `..`) is never looked up elsewhere. Files that the cache lacks are
 * downloaded into it. Without a network, or with HF_HUB_OFFLINE=1, only the cache is used.
 * @throws CheckpointError when the name is neither a directory nor a hub's name, or the engine cannot compute a model
 *   on a hub, whose weights then are not downloaded; HubError when the download fails; the signal's reason
 */
export async function modelDirectory(model: string, options: ModelDirectoryOptions = {}): Promise<string> {
  return (await findModel(model, options)).directory;
}

/**
 * Finds the place as `modelDirectory` does, with the commit of a model that is on a hub, or the hash of Ollama's file.
 * @param commit The commit or hash to take, even if the name means another one now
 */
export async function findModel(
  model: string,
  { commit, ...options }: ModelDirectoryOptions & { readonly commit?: string | undefined },
): Promise<{ readonly directory: string; readonly commit?: string }> {
  const path = expandHome(model);
  const status = await statusOf(path);
  if (status?.isDirectory()) return { directory: (await onlyGguf(path)) ?? path };
  if (status?.isFile()) {
    if (await isGguf(nodeFiles, path)) return { directory: path };
    throw new CheckpointError(`${model}: is a file that is no GGUF file, expected one or a directory with config.json`);
  }
  if (!looksLikePath(model) && (commit === undefined || isDigest(commit))) {
    const local = await modelOnDisk(model, options.environment ?? process.env, commit);
    if (local !== undefined) {
      options.onProgress?.(`Taking ${model} as ${local.program} has it (${local.file}).`);
      return { directory: local.file, ...(local.digest !== undefined && { commit: local.digest }) };
    }
    if (commit !== undefined)
      throw new CheckpointError(`${model}: Ollama no longer has the file ${commit}, which this run began with`);
  }
  const named = parseModelId(model);
  const steps = await checkpointsBeside(path);
  if (steps !== undefined) throw new CheckpointError(`${model}: there is no such directory; ${steps}`);
  if (named === undefined)
    throw new CheckpointError(
      `${model}: expected a directory with config.json or a GGUF file, found none; nor is it a model that Ollama or LM Studio has (drmas doctor lists them), nor a name on a hub, org/name[@revision]`,
    );
  const id = { ...named, revision: commit ?? named.revision };
  const context: Context = { files: options.files ?? 'all', ...downloadContext(options) };
  const cache = new ModelCache(cacheRoot(context.environment), id);
  try {
    const directory = await fromHub(cache, id, context);
    return { directory, commit: basename(directory) };
  } catch (error) {
    context.signal.throwIfAborted();
    throw diskError(error, cache.directory);
  }
}

/** The checkpoints that a run has in place of one that is gone; undefined if the path is not one of a run's. */
async function checkpointsBeside(path: string): Promise<string | undefined> {
  const [, root] = /^(.*[/\\]checkpoints)[/\\]step-\d+(?:[/\\]|$)/.exec(path) ?? [];
  if (root === undefined || !(await statusOf(root))?.isDirectory()) return undefined;
  const steps = (await readdir(root)).filter((name) => /^step-\d+$/.test(name)).sort();
  return steps.length === 0 ? `${root} has no checkpoint` : `${root} has ${steps.join(', ')}`;
}

/**
 * The GGUF file of a directory that holds nothing else of a model, as LM Studio and hubs have them.
 * @throws CheckpointError when there are several, such as one for each number format
 */
async function onlyGguf(directory: string): Promise<string | undefined> {
  const names = await readdir(directory).catch(() => []);
  const models = names.filter((name) => name.endsWith('.gguf') && !name.startsWith('mmproj')).sort();
  if (models.length === 0 || names.some((name) => name === 'config.json' || name === 'adapter_config.json'))
    return undefined;
  const [only, ...more] = models;
  if (more.length > 0)
    throw new CheckpointError(`${directory}: expected one GGUF file, found ${models.length}: ${models.join(', ')}`);
  return only && join(directory, only);
}

async function fromHub(cache: ModelCache, id: ModelId, context: Context): Promise<string> {
  const { environment, files, signal, onProgress } = context;
  if (isOffline(environment)) {
    const { directory, missing } = await inCache(cache, id, files);
    if (missing === undefined) return directory;
    throw new HubError(
      'offline',
      `${formatModelId(id)}: HF_HUB_OFFLINE is set, and ${cache.directory} lacks ${missing}`,
    );
  }
  const client = hubClient(id, environment, signal);
  let commit: string;
  try {
    commit = await askedCommit(cache, client, id, context);
  } catch (error) {
    if (!(error instanceof HubError) || error.reason !== 'unreachable') throw error;
    const { directory, missing } = await inCache(cache, id, files);
    if (missing !== undefined)
      throw new HubError(
        'unreachable',
        `${formatModelId(id)}: ${error.message}; and ${cache.directory} lacks ${missing}`,
      );
    onProgress(`${error.message}; taking ${formatModelId(id)} as it was last downloaded (${directory}).`);
    return directory;
  }
  await download(cache, client, commit, id, context);
  await cache.rememberCommit(id.revision, commit);
  return cache.snapshot(commit);
}

export const isOffline = ({ HF_HUB_OFFLINE = '' }: NodeJS.ProcessEnv): boolean =>
  /^(?:1|on|yes|true)$/i.test(HF_HUB_OFFLINE);

/**
 * The commit of a revision as the hub says now. A busy hub is waited for only if the cache has none.
 * @throws HubError
 */
export async function askedCommit(
  cache: ModelCache,
  hub: HubClient,
  { revision }: ModelId,
  context: DownloadContext,
): Promise<string> {
  const isKnown = (await cache.commitOf(revision)) !== undefined;
  return patiently(() => hub.commit(), patience(context, !isKnown));
}

/**
 * The retries of requests about a repository. They are few, so that a machine without a network soon uses its cache.
 */
export const patience = ({ retryDelayMs, signal, onProgress }: DownloadContext, heeds = true) => ({
  ...{ retries: 1, retryDelayMs, signal, onProgress, heeds },
});

/** The model in the cache, and the first file that is missing there. */
async function inCache(
  cache: ModelCache,
  { revision }: ModelId,
  needed: NeededFiles,
): Promise<{ readonly directory: string; readonly missing: string | undefined }> {
  const commit = await cache.commitOf(revision);
  if (commit === undefined) return { directory: cache.directory, missing: `revision "${revision}"` };
  const directory = cache.snapshot(commit);
  const there = await cache.files(commit);
  const missing = lacking(there, needed);
  if (missing !== undefined || needed === 'tokenizer') return { directory, missing };
  const weights = weightFiles(await indexText(cache, commit, there));
  return { directory, missing: weights.find((name) => !there.has(name)) };
}

async function indexText(cache: ModelCache, commit: string, there: ReadonlySet<string>): Promise<string | undefined> {
  if (there.has('model.safetensors') || !there.has(INDEX)) return undefined;
  return readFile(join(cache.snapshot(commit), INDEX), 'utf8');
}

async function download(
  cache: ModelCache,
  client: HubClient,
  commit: string,
  id: ModelId,
  context: Context,
): Promise<void> {
  const files = await patiently(() => client.files(commit), patience(context));
  const remote = new Map(files.map((file) => [file.name, file]));
  const there = new Set(remote.keys());
  const missing = lacking(there, context.files);
  if (missing !== undefined) throw lacks(id, missing, there);
  const fetchAll = async (names: readonly string[]) => {
    const absent = names.find((name) => !remote.has(name));
    if (absent !== undefined) throw lacks(id, absent, there);
    const wanted = names.flatMap((name) => remote.get(name) ?? []);
    await downloadFiles(cache, client, commit, wanted, id, context);
  };
  await fetchAll(smallFiles(there, context.files));
  if (context.files !== 'all') return;
  await describeModel(nodeFiles, cache.snapshot(commit)); // of others the weights would come in vain
  await fetchAll(weightFiles(await indexText(cache, commit, there)));
}

function lacks(id: ModelId, missing: string, there: ReadonlySet<string>): HubError {
  const other = [...there].find((name) => /\.(?:bin|pt|pth|gguf|h5|msgpack)$/.test(name));
  const hint = missing.endsWith('.safetensors') && other ? ` (found ${other}; only safetensors are read)` : '';
  return new HubError('missing', `${formatModelId(id)} has no ${missing}${hint}`);
}

/** Downloads the files that the cache lacks, and links all of them into the snapshot. @throws HubError */
export async function downloadFiles(
  cache: ModelCache,
  client: HubClient,
  commit: string,
  files: readonly RemoteFile[],
  id: ModelId,
  { signal, onProgress, retryDelayMs }: DownloadContext,
): Promise<void> {
  const linked = await cache.files(commit);
  const unlinked = files.filter(({ name }) => !linked.has(name));
  const absent: RemoteFile[] = [];
  for (const file of unlinked) if (!(await cache.holdsBlob(file.hash))) absent.push(file);
  await requireRoom(cache, absent);
  const onBytes = progressOf(formatModelId(id), absent, onProgress);
  for (const file of unlinked) {
    if (absent.includes(file)) {
      const onWait = () => onProgress(`Waiting for another process that is downloading ${file.name} of ${id.name}.`);
      await downloadBlob(cache, client, commit, file, {
        signal,
        retryDelayMs,
        onWait,
        onProgress,
        onBytes: (bytes) => onBytes(file, bytes),
      });
    }
    await cache.link(commit, file.name, file.hash);
  }
}

/** @throws HubError if the disk has no room for the rest of the download */
async function requireRoom(cache: ModelCache, absent: readonly RemoteFile[]): Promise<void> {
  let needed = 0;
  for (const file of absent) needed += Math.max(0, file.bytes - (await partialBytes(cache, file)));
  const { bavail, bsize } = await statfs(await existing(cache.directory));
  if (needed > bavail * bsize)
    throw new HubError(
      'disk',
      `${cache.directory}: ${byteText(needed)} are to be downloaded, but ${byteText(bavail * bsize)} are free`,
    );
}

/** The directory, or the nearest one above it that exists. */
async function existing(directory: string): Promise<string> {
  const isThere = (await statusOf(directory))?.isDirectory() || dirname(directory) === directory;
  return isThere ? directory : existing(dirname(directory));
}
