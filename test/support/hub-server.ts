/** A server on this machine that answers the requests of `@huggingface/hub` about one model, or one data set. */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface HubServer {
  /** The endpoint; the bytes of large files come from another origin, as on the real hub. */
  readonly url: string;
  /** `METHOD path` of each request, with `[range]` if it asked for a range beyond the first byte. */
  readonly requests: string[];
  /** Authorization headers that reached the origin of large files. */
  readonly leaked: string[];
  /** Answers a request itself by returning true. */
  intercept: (request: IncomingMessage, response: ServerResponse) => boolean;
  /** The commits of branches and tags. */
  readonly revisions: Map<string, string>;
  readonly files: Map<string, Buffer>;
  close(): Promise<void>;
}

export const COMMIT = 'c'.repeat(40);
const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
const gitHash = (bytes: Buffer) => createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex');
const isLarge = (name: string) => /\.(?:safetensors|bin|parquet)$/.test(name);
/** The name of the file among the cache's blobs. */
export const hashOf = (name: string, bytes: Buffer) => (isLarge(name) ? sha256(bytes) : gitHash(bytes));

export async function hubServer(
  model: string,
  content: Readonly<Record<string, Buffer | string>>,
  type: 'model' | 'dataset' = 'model',
): Promise<HubServer> {
  const place = type === 'model' ? model : `datasets/${model}`;
  const files = new Map(Object.entries(content).map(([name, bytes]) => [name, Buffer.from(bytes)]));
  const requests: string[] = [];
  const leaked: string[] = [];
  const revisions = new Map([['main', COMMIT]]);

  const answer = (request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url ?? '', 'http://hub');
    const { range } = request.headers;
    requests.push(`${request.method} ${url.pathname}${range && range !== 'bytes=0-0' ? ` [${range}]` : ''}`);
    if (hub.intercept(request, response)) return;
    const [, revision] = new RegExp(`^/api/${type}s/${model}/revision/(.+)$`).exec(url.pathname) ?? [];
    const tree = new RegExp(`^/api/${type}s/${model}/tree/([^/]+)$`).exec(url.pathname);
    const [, at, name = ''] = new RegExp(`^/${place}/resolve/([^/]+)/(.+)$`).exec(url.pathname) ?? [];
    const commit = revision && (revisions.get(decodeURIComponent(revision)) ?? known(decodeURIComponent(revision)));
    if (commit) return json(response, { _id: '1', id: model, sha: commit, lastModified: new Date(0).toISOString() });
    if (revision) return refuse(response, 404, 'RevisionNotFound');
    if (tree) return list(response, url);
    const bytes = files.get(name);
    if (at !== COMMIT || bytes === undefined) return refuse(response, 404, at ? 'EntryNotFound' : 'RepoNotFound');
    if (!isLarge(name)) return send(request, response, bytes, gitHash(bytes));
    response.writeHead(302, {
      location: `${urlOf(store)}/${sha256(bytes)}`,
      'x-linked-etag': `"${sha256(bytes)}"`,
      'x-linked-size': bytes.length,
    });
    response.end();
  };
  const known = (revision: string) => (revision === COMMIT ? COMMIT : undefined);
  /** Two files a page. */
  const list = (response: ServerResponse, url: URL) => {
    const start = Number(url.searchParams.get('cursor') ?? 0);
    const entries = [...files].map(([path, bytes]) => ({
      type: 'file',
      path,
      size: bytes.length,
      oid: gitHash(isLarge(path) ? Buffer.from('pointer') : bytes),
      ...(isLarge(path) && { lfs: { oid: sha256(bytes), size: bytes.length, pointerSize: 130 } }),
    }));
    const next = new URL(url.pathname, urlOf(main));
    next.searchParams.set('cursor', String(start + 2));
    if (start + 2 < entries.length) response.setHeader('link', `<${next}>; rel="next"`);
    json(response, [{ type: 'directory', path: 'onnx', oid: '0', size: 0 }, ...entries.slice(start, start + 2)]);
  };
  /** The origin of large files. */
  const deliver = (request: IncomingMessage, response: ServerResponse) => {
    const { range, authorization } = request.headers;
    requests.push(`${request.method} blob${range && range !== 'bytes=0-0' ? ` [${range}]` : ''}`);
    if (authorization !== undefined) leaked.push(authorization);
    if (hub.intercept(request, response)) return;
    const bytes = [...files.values()].find((one) => `/${sha256(one)}` === request.url);
    if (bytes === undefined) return refuse(response, 404, 'EntryNotFound');
    send(request, response, bytes, sha256(bytes));
  };

  const main = await listen(answer);
  const store = await listen(deliver);
  const close = async () => {
    for (const server of [main, store]) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  };
  const hub: HubServer = { url: urlOf(main), requests, leaked, revisions, files, intercept: () => false, close };
  return hub;
}

export function send(request: IncomingMessage, response: ServerResponse, bytes: Buffer, etag: string): void {
  const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? [];
  const start = Number(from ?? 0);
  const end = Math.min(Number(to ?? bytes.length - 1), bytes.length - 1);
  const ranged = from !== undefined && { 'content-range': `bytes ${start}-${end}/${bytes.length}` };
  response.writeHead(ranged ? 206 : 200, { etag: `"${etag}"`, 'content-length': end - start + 1, ...ranged });
  response.end(bytes.subarray(start, end + 1));
}

export function refuse(response: ServerResponse, status: number, code: string): void {
  response.writeHead(status, { 'x-error-code': code, 'content-type': 'application/json' });
  response.end(JSON.stringify({ error: code }));
}

function json(response: ServerResponse, value: unknown): void {
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(value));
}

async function listen(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<Server> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

const urlOf = (server: Server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
