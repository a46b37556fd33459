/** What went wrong with a request to S3, in words of what a person can do about it. */
import { reasonOf, StoreError } from '../../core/errors.js';

export interface S3Failure {
  readonly reason: StoreError['reason'];
  readonly message: string;
  /** Whether the same request may succeed a moment later. */
  readonly mayPass: boolean;
}

/** Error codes by which S3 says that it does not know or not trust who asks. */
const UNKNOWN_KEYS = new Set([
  ...['InvalidAccessKeyId', 'SignatureDoesNotMatch', 'ExpiredToken', 'InvalidToken', 'TokenRefreshRequired'],
  ...['RequestTimeTooSkewed', 'InvalidSecurity'],
]);
/** Error codes with which it asks for patience, beside the statuses from 500 on. */
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
  /** AuthorizationHeaderMalformed names the region that it expects. */
  readonly Region?: string;
}

/** Reads what the client threw. Codes: Amazon S3 API Reference, "Error responses". */
export function s3Failure(error: unknown, bucket: string): S3Failure {
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
    return final('region', `the bucket ${bucket} lies ${where}, or AWS_ENDPOINT_URL to its endpoint`);
  }
  if (name === 'NoSuchBucket') return final('missing', `there is no bucket ${bucket}`);
  if (name === 'NoSuchKey' || name === 'NotFound') return final('missing', 'there is no such file');
  if (UNKNOWN_KEYS.has(name)) return final('denied', `the credentials are not taken (${name})`);
  if (name === 'AccessDenied' || status === 403) return final('denied', `these credentials may not do that (${name})`);
  const message = `${name}: ${reasonOf(error)}${status === undefined ? '' : ` (${status})`}`;
  const mayPass = status === undefined || status >= 500 || status === TOO_MANY || BUSY.has(name);
  return { reason: 'unreachable', message, mayPass };
}
