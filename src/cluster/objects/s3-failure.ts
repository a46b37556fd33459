/** The reason why a request to S3 failed, with a remedy. */
import { reasonOf, StoreError } from '../../base/errors.js';

export interface S3Failure {
  readonly reason: StoreError['reason'];
  readonly message: string;
  /** Whether the same request may succeed a moment later. */
  readonly mayPass: boolean;
}

/** Error codes of S3 for unknown or rejected credentials. */
const UNKNOWN_KEYS = new Set([
  ...['InvalidAccessKeyId', 'SignatureDoesNotMatch', 'ExpiredToken', 'InvalidToken', 'TokenRefreshRequired'],
  ...['RequestTimeTooSkewed', 'InvalidSecurity'],
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
    return final('region', `the bucket ${bucket} is ${where}, or AWS_ENDPOINT_URL to its endpoint`);
  }
  if (name === 'NoSuchBucket') return final('missing', `there is no bucket ${bucket}`);
  if (name === 'NoSuchKey' || name === 'NotFound') return final('missing', 'there is no such file');
  if (UNKNOWN_KEYS.has(name)) return final('denied', `S3 rejects the credentials (${name})`);
  if (name === 'AccessDenied' || status === 403)
    return final('denied', `these credentials have no permission for the request (${name})`);
  const message = `${name}: ${reasonOf(error)}${status === undefined ? '' : ` (${status})`}`;
  const mayPass = status === undefined || status >= 500 || status === TOO_MANY || BUSY.has(name);
  return { reason: 'unreachable', message, mayPass };
}
