/** Requests to a hub: a revision's commit, its files, and their bytes. */
import { datasetInfo, downloadFile, type ListFileEntry, listFiles, modelInfo } from '@huggingface/hub';
import { HubError, messageOf, reasonOf } from '../errors.js';
import { Secret } from '../host.js';
import { bytesOf, soundFetch, withAskedWait } from '../platform.js';
import { COMMIT } from './model-cache.js';
import { formatModelId, type ModelId } from './model-id.js';

/** Limit of a hub's reply about a model. Real replies are far shorter. */
const LONGEST_ANSWER_BYTES = 64e6;
/** More files than any model's repository has. */
const MOST_FILES = 100_000;

const DEFAULT_ENDPOINT = 'https://huggingface.co';

/** A file of a repository: at the top of a model's, in any folder of a data set's. */
export interface RemoteFile {
  readonly name: string;
  readonly bytes: number;
  /** Hash of its contents: SHA-256 for large files, git's hash (SHA-1) for others. Hexadecimal. */
  readonly hash: string;
}

export interface HubClient {
  commit(): Promise<string>;
  files(commit: string): Promise<RemoteFile[]>;
  read(commit: string, file: string, offset: number): AsyncIterable<Uint8Array>;
}

/**
 * It reads HF_ENDPOINT and HF_TOKEN. It sends the token only to the endpoint.
 * Every method throws HubError, or the signal's reason.
 * @throws HubError if HF_ENDPOINT is no address of a hub, or has a user name or a password
 */
export function hubClient(id: ModelId, environment: NodeJS.ProcessEnv, signal: AbortSignal): HubClient {
  const { HF_ENDPOINT } = environment;
  const token = new Secret(environment.HF_TOKEN ?? '');
  const hubUrl = (HF_ENDPOINT || DEFAULT_ENDPOINT).replace(/\/+$/, '');
  const isAddress = /^https?:\/\//.test(hubUrl) && URL.canParse(hubUrl);
  const { username, password } = isAddress ? new URL(hubUrl) : { username: '', password: '' };
  if (username !== '' || password !== '' || (!isAddress && hubUrl.includes('@')))
    throw new HubError(
      'unreachable',
      'HF_ENDPOINT: expected the address of a hub without a user name or a password; a key belongs into HF_TOKEN',
    );
  if (!isAddress) throw new HubError('unreachable', `HF_ENDPOINT: expected the address of a hub, found "${hubUrl}"`);
  const { name, revision } = id;
  const { type = 'model' } = id;
  const repo = { type, name } as const;

  const ask: typeof fetch = async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input);
    const headers = new Headers(init?.headers);
    const trusted = token.reveal() !== '' && url.origin === new URL(hubUrl).origin;
    if (trusted) headers.set('authorization', `Bearer ${token.reveal()}`);
    const response = await soundFetch(url, { ...init, headers, signal }).catch((error: unknown) => {
      signal.throwIfAborted();
      throw unreachable(`${hubUrl} cannot be reached: ${reasonOf(error)}`, error);
    });
    if (!response.ok) throw refused(id, hubUrl, response, token);
    return response;
  };
  /** For replies that are read into memory. Bytes of files are counted when they are written. */
  const askBriefly: typeof fetch = async (...request) => {
    const response = await ask(...request);
    const { status, headers } = response;
    const text = new TextDecoder().decode(await bytesOf(response, LONGEST_ANSWER_BYTES));
    return new Response(token.mask(text), { status, headers });
  };
  /** Turns errors of the library about a reply that it cannot read into HubErrors. */
  const understood = async <T>(request: Promise<T>): Promise<T> => {
    try {
      return await request;
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof HubError) throw error;
      throw unreachable(`${hubUrl} does not answer as a hub does: ${messageOf(error)}`, error);
    }
  };

  return {
    async commit() {
      const request = { name, revision, additionalFields: ['sha' as const], hubUrl, fetch: askBriefly };
      const { sha } = await understood<{ readonly sha?: unknown }>(
        type === 'dataset' ? datasetInfo(request) : modelInfo(request),
      );
      if (typeof sha === 'string' && COMMIT.test(sha)) return sha;
      throw new HubError('unreachable', `${hubUrl} does not say which commit ${formatModelId(id)} is`);
    },

    async files(commit) {
      const recursive = type === 'dataset';
      const listing = listFiles({ repo, revision: commit, recursive, hubUrl, fetch: askBriefly });
      return understood(listedFiles(listing));
    },

    async *read(commit, file, offset) {
      let failure: unknown;
      // A stream that fails keeps only the text of the reason.
      const asking: typeof fetch = (...request) =>
        ask(...request).catch((error: unknown) => {
          failure = error;
          throw error;
        });
      try {
        // Without xet: one plain protocol for every endpoint.
        const blob = await downloadFile({ repo, path: file, revision: commit, hubUrl, fetch: asking, xet: false });
        if (blob === null) throw new HubError('missing', `${name} has no ${file}`);
        if (offset >= blob.size) return;
        yield* blob.slice(offset).stream();
      } catch (error) {
        signal.throwIfAborted();
        if (failure instanceof HubError) throw failure;
        if (error instanceof HubError) throw error;
        throw unreachable(`${hubUrl} cannot be reached: ${reasonOf(error)}`, error);
      }
    },
  };
}

async function listedFiles(listing: AsyncIterable<ListFileEntry>): Promise<RemoteFile[]> {
  const files: RemoteFile[] = [];
  for await (const entry of listing) {
    if (files.length === MOST_FILES) throw new HubError('unreachable', `the hub lists more than ${MOST_FILES} files`);
    if (entry.type === 'file') files.push(remoteFile(entry));
  }
  return files;
}

function remoteFile({ path, size, oid, lfs }: ListFileEntry): RemoteFile {
  if (!isInside(path))
    throw new HubError('unreachable', `the hub's list of files has the path ${JSON.stringify(path)}`);
  const hash = lfs?.oid ?? oid;
  if (hash === undefined || !/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(hash))
    throw new HubError('unreachable', `the hub's list of files gives no hash for ${path}`);
  return { name: path, bytes: lfs?.size ?? size, hash };
}

/** Whether a path of a list stays inside a directory that it is appended to. */
const isInside = (path: string): boolean =>
  !/[\\\0]|^[A-Za-z]:/.test(path) && path.split('/').every((part) => part !== '' && part !== '.' && part !== '..');

/** Its cause tells whether the same request would fail again. */
const unreachable = (message: string, cause: unknown): HubError =>
  Object.assign(new HubError('unreachable', message), { cause });

function refused(id: ModelId, hubUrl: string, response: Response, token: Secret): HubError {
  const { status, headers } = response;
  const shown = formatModelId(id);
  const code = headers.get('x-error-code');
  const reason = token.mask(headers.get('x-error-message') ?? '');
  if (status === 404 && code === 'RevisionNotFound')
    return new HubError('missing', `${id.name} has no revision "${id.revision}" on ${hubUrl}`);
  if (status === 404)
    return new HubError(
      'missing',
      id.type === 'dataset'
        ? `there is no data set ${shown} on ${hubUrl} (404)`
        : `${shown} is neither a directory here nor a model on ${hubUrl} (404)`,
    );
  if (status === 401 || status === 403) {
    const advice =
      token.reveal() !== ''
        ? 'HF_TOKEN was sent: its owner must be allowed to read it'
        : 'set HF_TOKEN to a token of somebody who may read it';
    const why =
      code === 'GatedRepo'
        ? `is gated: accept its terms on ${hubUrl}/${id.type === 'dataset' ? 'datasets/' : ''}${id.name}`
        : 'does not exist, is private, or needs a token';
    return new HubError('denied', `${shown} ${why}; ${advice} (${status}${reason && `: ${reason}`})`);
  }
  const message = `${hubUrl} answered with status ${status}${reason && `: ${reason}`}`;
  return withAskedWait(new HubError('unreachable', message), response);
}
