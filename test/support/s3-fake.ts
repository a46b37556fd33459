/**
 * Storage with S3's interface in this process: paths with the bucket in front, answers in the shapes that Amazon S3's
 * API Reference gives and that a server recorded. It looks at who asks and from which region, not at signatures.
 */
import { createHash } from 'node:crypto';
import { listen } from '@drmas/engine/platform';
import type { HttpBindings } from '@hono/node-server';
import { type Context, Hono } from 'hono';

export interface S3Request {
  readonly method: string;
  readonly key: string;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * The fault in place of a reply: a status with an error code, an answer that is lost or ends in the middle, none at
 * all, or a page of a list that names no next one.
 */
export type S3Fault =
  | { readonly status: number; readonly code: string }
  | 'cut'
  | 'silence'
  | 'no next page'
  | undefined;

export interface S3Fake {
  readonly url: string;
  /** All that is stored, by bucket and key. */
  readonly stored: Map<string, Map<string, Uint8Array>>;
  readonly requests: S3Request[];
  /** Decides on a fault for each request; none by default. */
  fault: (request: S3Request) => S3Fault;
  close(): Promise<void>;
}

/** The known keys, and their permissions. Their secrets do not matter. */
const S3_KEYS = { AKIDALL: 'write', AKIDREAD: 'read' } as const;
export const S3_REGION = 'eu-test-1';
const PAGE = 10;
/** The handler's answer if it wrote to the connection itself, or nothing: no server writes after it. */
const noAnswer = new Promise<Response>(() => {});

export async function s3Fake(buckets: readonly string[]): Promise<S3Fake> {
  const stored = new Map(buckets.map((name) => [name, new Map<string, Uint8Array>()]));
  const uploads = new Map<string, Map<number, Uint8Array>>();
  let begunUploads = 0;
  const app = new Hono();
  app.all('*', async (c) => {
    const url = new URL(c.req.url);
    const [bucket = '', ...rest] = url.pathname.slice(1).split('/').map(decodeURIComponent);
    const key = rest.join('/');
    const headers = Object.fromEntries(c.req.raw.headers);
    const body = new Uint8Array(await c.req.arrayBuffer());
    const request = { method: c.req.method, key, headers };
    fake.requests.push(request);
    const fault = fake.fault(request);
    if (fault === 'silence') return noAnswer;
    if (typeof fault === 'object') return failed(c, fault.status, fault.code);
    const [id = '', , region = ''] = (/Credential=([^,]+)/.exec(headers.authorization ?? '')?.[1] ?? '').split('/');
    const rights = S3_KEYS[id as keyof typeof S3_KEYS];
    if (rights === undefined) return failed(c, 403, 'InvalidAccessKeyId');
    if (region !== S3_REGION) return failed(c, 400, 'AuthorizationHeaderMalformed', `<Region>${S3_REGION}</Region>`);
    const files = stored.get(bucket);
    if (files === undefined) return failed(c, 404, 'NoSuchBucket', `<BucketName>${bucket}</BucketName>`);
    if (c.req.method !== 'GET' && rights !== 'write') return failed(c, 403, 'AccessDenied');
    const md5 = headers['content-md5'];
    if (md5 !== undefined && md5 !== createHash('md5').update(body).digest('base64'))
      return failed(c, 400, 'BadDigest');
    if (key === '') return listed(c, files, url.searchParams, fault === 'no next page');
    const upload = url.searchParams.get('uploadId');
    switch (c.req.method) {
      case 'GET': {
        const bytes = files.get(key);
        if (bytes === undefined) return failed(c, 404, 'NoSuchKey', `<Key>${escaped(key)}</Key>`);
        const length = { 'content-length': `${bytes.length}` }; // the answer to HEAD has it too
        if (fault !== 'cut') return c.body(Uint8Array.from(bytes), 200, { etag: etag(bytes), ...length });
        const { outgoing } = c.env as HttpBindings;
        outgoing.writeHead(200, { 'content-length': bytes.length });
        outgoing.write(bytes.subarray(0, bytes.length >> 1), () => outgoing.destroy());
        return noAnswer;
      }
      case 'PUT':
        if (upload === null) files.set(key, body);
        else uploads.get(upload)?.set(Number(url.searchParams.get('partNumber')), body);
        return c.body(null, 200, { etag: etag(body) });
      case 'DELETE':
        if (upload === null) files.delete(key);
        else uploads.delete(upload);
        return c.body(null, 204);
      default: {
        if (upload === null) {
          const begun = `upload-${++begunUploads}`;
          uploads.set(begun, new Map());
          return xml(
            c,
            `<InitiateMultipartUploadResult><Bucket>${bucket}</Bucket><Key>${escaped(key)}</Key>
<UploadId>${begun}</UploadId></InitiateMultipartUploadResult>`,
          );
        }
        const parts = uploads.get(upload);
        if (parts === undefined) return failed(c, 404, 'NoSuchUpload');
        uploads.delete(upload);
        files.set(key, Uint8Array.from(Buffer.concat([...parts].sort(([a], [b]) => a - b).map(([, part]) => part))));
        if (fault === 'cut') {
          (c.env as HttpBindings).outgoing.destroy();
          return noAnswer;
        }
        return xml(c, `<CompleteMultipartUploadResult><Key>${escaped(key)}</Key></CompleteMultipartUploadResult>`);
      }
    }
  });
  const listening = await listen({ app, guard: () => undefined }, { host: '127.0.0.1', port: 0 });
  const fake: S3Fake = {
    url: listening.url,
    stored,
    requests: [],
    fault: () => undefined,
    close: () => listening.close(),
  };
  return fake;
}

/** A page of names: ten names, while S3 gives a thousand. */
function listed(c: Context, files: ReadonlyMap<string, Uint8Array>, query: URLSearchParams, isLast: boolean): Response {
  const prefix = query.get('prefix') ?? '';
  const after = query.get('continuation-token') ?? '';
  const names = [...files.keys()].filter((key) => key.startsWith(prefix) && key > after).sort();
  const page = names.slice(0, PAGE);
  const contents = page.map(
    (key) => `<Contents><Key>${escaped(key)}</Key><Size>${files.get(key)?.length}</Size></Contents>`,
  );
  const next =
    names.length > PAGE && !isLast
      ? `<NextContinuationToken>${escaped(page.at(-1) ?? '')}</NextContinuationToken>`
      : '';
  return xml(
    c,
    `<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Prefix>${escaped(prefix)}</Prefix>
<KeyCount>${page.length}</KeyCount><IsTruncated>${names.length > PAGE}</IsTruncated>${next}${contents.join('')}
</ListBucketResult>`,
  );
}

const etag = (bytes: Uint8Array) => `"${createHash('md5').update(bytes).digest('hex')}"`;

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

const xml = (c: Context, text: string, status = 200) =>
  c.body(`<?xml version="1.0" encoding="UTF-8"?>\n${text}`, status as 200, { 'content-type': 'application/xml' });

const failed = (c: Context, status: number, code: string, more = '') =>
  xml(c, `<Error><Code>${code}</Code><Message>${code} here</Message>${more}<RequestId>0A</RequestId></Error>`, status);
