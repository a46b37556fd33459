/** Storage with S3's interface as an object store. It uses AWS's own client, an optional package. */

import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';
import { globalAgent as httpAgent } from 'node:http';
import { globalAgent as httpsAgent } from 'node:https';
import type { CompletedPart, S3Client } from '@aws-sdk/client-s3';
import { RecipeError, reasonOf, StoreError } from '@drmas/engine/errors';
import { tlsFault } from '@drmas/engine/platform';
import pRetry from 'p-retry';
import type { ObjectStore } from './object-store.js';

export const S3_CLIENT = '@aws-sdk/client-s3';

type S3Module = typeof import('@aws-sdk/client-s3');

interface S3Options {
  /** AWS_REGION, AWS_ENDPOINT_URL and other variables; the client reads some of them itself. */
  readonly environment: NodeJS.ProcessEnv;
  /** How often a request is repeated after a temporary failure. */
  readonly retries?: number;
  /** Wait before the first repetition. It doubles with each further repetition, up to a minute. */
  readonly retryDelayMs?: number;
  /** A connection on which nothing moves for this time is given up, and the request is repeated. */
  readonly silenceMs?: number;
  /** Bytes of one request; a larger file is sent in parts. S3 accepts no parts smaller than the default. */
  readonly partBytes?: number;
}

/** The most parts of a file that S3 accepts. */
const MOST_PARTS = 10_000;
const PART_BYTES = 1 << 24;
const LONGEST_WAIT_MS = 60_000;
const CONNECT_MS = 30_000;
const SILENCE_MS = 120_000;

/** The default region for storage other than AWS. A request's signature includes it, and most servers ignore it. */
const ANY_REGION = 'us-east-1';

/** `s3://bucket/prefix` as bucket and prefix; undefined for a folder. @throws RecipeError for any other address */
export function s3Place(place: string): { readonly bucket: string; readonly prefix: string } | undefined {
  if (!/^(s3:|[a-z][a-z\d+.-]+:\/\/)/i.test(place)) return undefined;
  const parts = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(.*))?$/.exec(place);
  const prefix = (parts?.[2] ?? '').replace(/\/+$/, '');
  // The message does not quote the place, which may contain a key or a secret.
  if (parts?.[1] === undefined || /[?#@]/.test(place) || prefix.split('/').some((word) => word === '..'))
    throw new RecipeError(
      'expected --store s3://bucket/prefix; drmas reads keys from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
    );
  return { bucket: parts[1], prefix: prefix === '' ? '' : `${prefix}/` };
}

export class S3Objects implements ObjectStore {
  readonly place: string;
  readonly isFolder = false;
  readonly #s3: S3Module;
  readonly #client: S3Client;
  readonly #bucket: string;
  readonly #prefix: string;
  readonly #options: Required<Omit<S3Options, 'environment' | 'silenceMs'>>;

  private constructor(s3: S3Module, { bucket, prefix }: { bucket: string; prefix: string }, options: S3Options) {
    const { environment, retries = 6, retryDelayMs = 500, partBytes = PART_BYTES, silenceMs = SILENCE_MS } = options;
    const { AWS_REGION, AWS_DEFAULT_REGION, AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL } = environment;
    const endpoint = AWS_ENDPOINT_URL_S3 || AWS_ENDPOINT_URL;
    const region = AWS_REGION || AWS_DEFAULT_REGION || (endpoint ? ANY_REGION : undefined);
    this.#s3 = s3;
    this.#bucket = bucket;
    this.#prefix = prefix;
    this.place = `s3://${bucket}/${prefix}`.replace(/\/$/, '');
    this.#options = { retries, retryDelayMs, partBytes };
    const reread = { ignoreCache: true }; // of AWS's files, which other programs write with new keys
    this.#client = new s3.S3Client({
      ...reread,
      ...(region === undefined ? {} : { region }),
      ...(endpoint ? { endpoint, forcePathStyle: true } : {}),
      // Node's own agents, with the proxy that they use. The client itself waits for ever on a silent connection.
      requestHandler: { httpAgent, httpsAgent, connectionTimeout: CONNECT_MS, socketTimeout: silenceMs },
      maxAttempts: 1, // this class repeats requests, with new streams
      requestChecksumCalculation: 'WHEN_REQUIRED', // many other servers do not know AWS's newer checksums
      responseChecksumValidation: 'WHEN_REQUIRED',
    });
  }

  /** @throws RecipeError if the client is not installed, or the endpoint's address contains a password */
  static async open(place: { bucket: string; prefix: string }, options: S3Options): Promise<S3Objects> {
    for (const name of ['AWS_ENDPOINT_URL_S3', 'AWS_ENDPOINT_URL'])
      if (/\/\/[^/]*@/.test(options.environment[name] ?? ''))
        throw new RecipeError(
          `${name} contains a user or a password; drmas reads keys from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY`,
        );
    return new S3Objects(await s3Module(), place, options);
  }

  async put(name: string, path: string): Promise<void> {
    const file = await open(path, 'r');
    try {
      const { size } = await file.stat();
      const part = Math.max(this.#options.partBytes, Math.ceil(size / MOST_PARTS));
      const bytesAt = async (from: number, length: number) => {
        const bytes = new Uint8Array(Math.max(0, Math.min(length, size - from)));
        for (let at = 0; at < bytes.length; ) {
          const { bytesRead } = await file.read(bytes, at, bytes.length - at, from + at);
          if (bytesRead === 0) throw new StoreError('damaged', `${path} was cut off while it was read`);
          at += bytesRead;
        }
        return bytes;
      };
      if (size > part) return await this.#putInParts(name, size, part, (at) => bytesAt(at, part));
      const Body = await bytesAt(0, size);
      await this.#ask(`writing ${name}`, () =>
        this.#client.send(new this.#s3.PutObjectCommand({ ...this.#at(name), Body, ContentMD5: md5(Body) })),
      );
    } finally {
      await file.close();
    }
  }

  /** Sends a file in parts. The file appears under its name with the last request. */
  async #putInParts(
    name: string,
    size: number,
    partBytes: number,
    bytesAt: (from: number) => Promise<Uint8Array>,
  ): Promise<void> {
    const what = `writing ${name}`;
    const s3 = this.#s3;
    const at = this.#at(name);
    const begun = await this.#ask(what, () => this.#client.send(new s3.CreateMultipartUploadCommand(at)));
    const upload = { ...at, UploadId: begun.UploadId };
    try {
      const parts: CompletedPart[] = [];
      for (let from = 0; from < size; from += partBytes) {
        const Body = await bytesAt(from);
        const part = { ...upload, PartNumber: parts.length + 1, Body, ContentMD5: md5(Body) };
        const { ETag } = await this.#ask(what, () => this.#client.send(new s3.UploadPartCommand(part)));
        parts.push({ PartNumber: part.PartNumber, ETag });
      }
      const whole = { ...upload, MultipartUpload: { Parts: parts } };
      await this.#ask(what, async (attempt) => {
        try {
          await this.#client.send(new s3.CompleteMultipartUploadCommand(whole));
        } catch (error) {
          // An earlier request may have stored the file although its answer was lost.
          if (attempt === 1 || !(error instanceof s3.NoSuchUpload) || (await this.#sizeOf(name)) !== size) throw error;
        }
      });
    } catch (error) {
      // If that fails too, a rule of the bucket for incomplete uploads removes the parts.
      await this.#client.send(new s3.AbortMultipartUploadCommand(upload)).catch(() => {});
      throw error;
    }
  }

  async get(name: string, path: string): Promise<void> {
    await this.#ask(`reading ${name}`, async () => {
      const { Body, ContentLength } = await this.#client.send(new this.#s3.GetObjectCommand(this.#at(name)));
      const file = await open(path, 'w');
      try {
        let written = 0;
        for await (const bytes of Body as AsyncIterable<Uint8Array>) written += (await file.write(bytes)).bytesWritten;
        if (ContentLength !== undefined && written !== ContentLength)
          throw Object.assign(new Error(`${written} of ${ContentLength} bytes received`), { code: 'ECONNRESET' });
      } finally {
        await file.close();
      }
    });
  }

  async list(prefix: string): Promise<string[]> {
    const names: string[] = [];
    let ContinuationToken: string | undefined;
    do {
      const request = { Bucket: this.#bucket, Prefix: this.#prefix + prefix, ContinuationToken };
      const page = await this.#ask(`listing ${prefix}`, () =>
        this.#client.send(new this.#s3.ListObjectsV2Command(request)),
      );
      for (const { Key } of page.Contents ?? []) if (Key !== undefined) names.push(Key.slice(this.#prefix.length));
      const next = page.IsTruncated === true ? page.NextContinuationToken : undefined;
      if (page.IsTruncated === true && (!next || next === ContinuationToken))
        throw new StoreError(
          'damaged',
          `${this.place}: listing ${prefix}: the server names no next page of a long list`,
        );
      ContinuationToken = next;
    } while (ContinuationToken !== undefined);
    return names.sort();
  }

  async remove(name: string): Promise<void> {
    await this.#ask(`removing ${name}`, () => this.#client.send(new this.#s3.DeleteObjectCommand(this.#at(name))));
  }

  async #sizeOf(name: string): Promise<number | undefined> {
    try {
      return (await this.#client.send(new this.#s3.HeadObjectCommand(this.#at(name)))).ContentLength;
    } catch (error) {
      if (error instanceof this.#s3.NotFound) return undefined;
      throw error;
    }
  }

  #at(name: string) {
    return { Bucket: this.#bucket, Key: this.#prefix + name };
  }

  /** @throws StoreError with a remedy */
  async #ask<Result>(what: string, act: (attempt: number) => Promise<Result>): Promise<Result> {
    const { retries, retryDelayMs } = this.#options;
    const failure = (error: unknown): S3Failure => s3Failure(error, this.#bucket);
    try {
      return await pRetry((attempt) => this.#withFreshKeys(() => act(attempt)), {
        retries,
        minTimeout: retryDelayMs,
        maxTimeout: LONGEST_WAIT_MS,
        randomize: true,
        shouldRetry: ({ error }) => failure(error).mayPass,
      });
    } catch (error) {
      const { reason, message } = failure(error);
      throw new StoreError(reason, `${this.place}: ${what}: ${message}`);
    }
  }

  /** Repeats a request whose keys S3 rejects, if the environment has other keys by now: keys of sessions expire. */
  async #withFreshKeys<Result>(act: () => Promise<Result>): Promise<Result> {
    const keys = async (options?: { forceRefresh: boolean }) => {
      const { accessKeyId, secretAccessKey, sessionToken } = await this.#client.config.credentials(options);
      return JSON.stringify([accessKeyId, secretAccessKey, sessionToken]);
    };
    const used = await keys();
    try {
      return await act();
    } catch (error) {
      if (!UNKNOWN_KEYS.has((error as Error).name)) throw error;
      const fresh = await keys({ forceRefresh: true }).catch(() => used); // a program may be writing the file
      if (used === fresh) throw error;
      return await act();
    }
  }
}

async function s3Module(): Promise<S3Module> {
  try {
    return await import('@aws-sdk/client-s3');
  } catch (error) {
    const { message } = error as Error;
    throw new RecipeError(`--store s3://... needs \`npm install ${S3_CLIENT}\`: ${message}`);
  }
}

const md5 = (bytes: Uint8Array) => createHash('md5').update(bytes).digest('base64');

interface S3Failure {
  readonly reason: StoreError['reason'];
  readonly message: string;
  /** Whether the same request may succeed a moment later. */
  readonly mayPass: boolean;
}

/** Error codes of S3 for unknown or rejected credentials. */
const UNKNOWN_KEYS = new Set([
  ...['InvalidAccessKeyId', 'SignatureDoesNotMatch', 'ExpiredToken', 'InvalidToken', 'TokenRefreshRequired'],
  'InvalidSecurity',
]);
/** Error codes of S3 for requests to repeat later, beside the statuses from 500 on. */
const BUSY = new Set([
  'SlowDown',
  'ThrottlingException',
  'Throttling',
  'RequestTimeout',
  'OperationAborted',
  'BadDigest',
]);
const TOO_MANY = 429;
const BAD_REGION = new Set(['AuthorizationHeaderMalformed', 'PermanentRedirect', 'IllegalLocationConstraintException']);

interface ServiceError extends Error {
  readonly $metadata?: { readonly httpStatusCode?: number };
  readonly $response?: { readonly headers?: Readonly<Record<string, string>> };
  /** AuthorizationHeaderMalformed names the region that S3 expects. */
  readonly Region?: string;
}

/** The reason of an error of the client. Codes: Amazon S3 API Reference, "Error responses". */
function s3Failure(error: unknown, bucket: string): S3Failure {
  if (!(error instanceof Error)) return { reason: 'unreachable', message: reasonOf(error), mayPass: false };
  if (error instanceof StoreError) return { reason: error.reason, message: error.message, mayPass: false };
  const { name, $metadata, $response, Region }: ServiceError = error;
  const status = $metadata?.httpStatusCode;
  const final = (reason: StoreError['reason'], message: string) => ({ reason, message, mayPass: false });
  if (name === 'CredentialsProviderError' || /could not load credentials/i.test(error.message))
    return final('denied', 'no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE');
  if (/region is missing/i.test(error.message)) return final('region', 'no region: set AWS_REGION');
  if (BAD_REGION.has(name) || status === 301) {
    const region = Region ?? $response?.headers?.['x-amz-bucket-region'];
    const where = region === undefined ? 'in another region: set AWS_REGION' : `in ${region}: set AWS_REGION=${region}`;
    return final('region', `the bucket ${bucket} is ${where}, or AWS_ENDPOINT_URL to its endpoint`);
  }
  if (name === 'NoSuchBucket') return final('missing', `there is no bucket ${bucket}`);
  if (name === 'NoSuchKey' || name === 'NotFound') return final('missing', 'there is no such file');
  if (name === 'RequestTimeTooSkewed')
    // the client corrects its time for the next request
    return { reason: 'denied', message: `the clock of this machine differs too much from S3's`, mayPass: true };
  if (UNKNOWN_KEYS.has(name)) return final('denied', `S3 rejects the credentials (${name})`);
  if (name === 'AccessDenied' || status === 403)
    return final('denied', `these credentials have no permission for the request (${name})`);
  const untrusted = tlsFault(error);
  if (untrusted !== undefined) return final('unreachable', untrusted);
  const message = `${name}: ${reasonOf(error)}${status === undefined ? '' : ` (${status})`}`;
  const mayPass = status === undefined || status >= 500 || status === TOO_MANY || BUSY.has(name);
  return { reason: 'unreachable', message, mayPass };
}
