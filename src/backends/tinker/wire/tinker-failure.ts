import { BackendError } from '../../../core/errors.js';

/**
 * `busy`: try again later (408, 429, overloaded). `unreachable`: no answer, and it is not known whether the request
 * arrived. `late`: no result within the total deadline. `lost`: the session, model, sampler or future is no longer
 * there. `refused`: the request was wrong. `failed`: the server broke down over it. `malformed`: the answer has another
 * shape than expected, or numbers in it are missing. `fate-unknown`: an update may or may not have happened, and asking
 * again could do it twice.
 */
export type FailureKind =
  | 'busy'
  | 'unreachable'
  | 'late'
  | 'lost'
  | 'refused'
  | 'failed'
  | 'malformed'
  | 'fate-unknown';

/** Which of the known servers' error bodies was found. */
export type ErrorShape = 'detail' | 'error' | 'error_message' | 'text';

/** What went wrong with a Tinker-protocol server. The message names the request and holds what the server said. */
export class TinkerError extends BackendError {
  readonly kind: FailureKind;
  /** HTTP status, 0 where there was none. */
  readonly status: number;
  readonly shape: ErrorShape | undefined;

  constructor(kind: FailureKind, message: string, about: { status?: number; shape?: ErrorShape } = {}) {
    super(message);
    this.kind = kind;
    this.status = about.status ?? 0;
    this.shape = about.shape;
  }
}

export function isKind(error: unknown, ...kinds: readonly FailureKind[]): error is TinkerError {
  return error instanceof TinkerError && kinds.includes(error.kind);
}

/** Validation errors echo the whole input. */
const LONGEST_MESSAGE = 300;

/** What servers say of a session, model, adapter, sampler or future that they do not have (any more). */
const LOST =
  /not loaded|stale request|(model|session|sampler|adapter|future|request)\b.{0,80}\b(not found|unknown|expired|no longer)|unknown (session|model|sampler)/i;

/** The error in an answer of status `status`: four servers, four shapes. */
export function failureOf(request: string, status: number, body: unknown): TinkerError {
  const { text, shape } = errorText(body);
  const message = `${request}: the server answered ${status === 200 ? 'with an error' : status}: ${shorten(text)}`;
  return new TinkerError(kindOf(status, text, isUsers(body)), message, { status, shape });
}

/** Whether the server says that the request was wrong. */
const isUsers = (body: unknown) =>
  typeof body === 'object' && body !== null && 'category' in body && /^user$/i.test(String(body.category));

function kindOf(status: number, text: string, isRefused: boolean): FailureKind {
  if (status === 408 || status === 429 || status === 502 || status === 503 || status === 504) return 'busy';
  if (status === 410) return 'lost';
  if (/checkpoint\b.*not found/i.test(text)) return 'refused'; // what was saved is not there: nothing to recover from
  if (LOST.test(text)) return 'lost';
  if (isRefused) return 'refused';
  return status >= 500 || status === 200 ? 'failed' : 'refused';
}

function errorText(body: unknown): { readonly text: string; readonly shape: ErrorShape } {
  if (typeof body === 'object' && body !== null) {
    const fields = body as Record<string, unknown>;
    for (const shape of ['error_message', 'detail', 'error'] as const) {
      const detail = fields[shape];
      if (detail !== undefined && detail !== null) return { text: detailText(detail), shape };
    }
    return { text: JSON.stringify(body), shape: 'text' };
  }
  return { text: String(body), shape: 'text' };
}

/** A validation error's `detail` is a list of places and messages. */
function detailText(detail: unknown): string {
  if (typeof detail === 'string') return detail;
  if (!Array.isArray(detail)) return JSON.stringify(detail);
  return detail
    .map(
      (each: { loc?: unknown; msg?: unknown }) => `${Array.isArray(each?.loc) ? each.loc.join('.') : ''} ${each?.msg}`,
    )
    .join('; ');
}

/** The last line of a traceback says most. */
function shorten(text: string): string {
  const lines = text.trim().split('\n');
  const summary = lines.length > 3 ? (lines.at(-1) as string) : lines.join(' ');
  return summary.length <= LONGEST_MESSAGE ? summary : `${summary.slice(0, LONGEST_MESSAGE)}...`;
}
