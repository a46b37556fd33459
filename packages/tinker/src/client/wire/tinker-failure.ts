import { BackendError } from '@drmas/engine/errors';
import { isPassing } from '@drmas/engine/platform';

/**
 * `busy`: try again later (408, 425, 429, 503, 529). `unreachable`: no answer of the server itself, and it is unknown
 * whether the request arrived (a proxy's 502, 504, or 520 to 530, too). `late`: no result within the total deadline.
 * `lost`: the session, model, sampler or future no longer exists. `refused`: the request was wrong. `failed`: the
 * server failed while it computed. `malformed`: the answer has another shape than expected, or numbers are missing.
 * `fate-unknown`: an update may or may not have happened, and a second request could do it twice.
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

/** The form of the error body, by known servers. */
export type ErrorShape = 'detail' | 'error' | 'error_message' | 'text';

/** A failure of a Tinker-protocol server. The message names the request and quotes the server's error. */
export class TinkerError extends BackendError {
  readonly kind: FailureKind;
  /** HTTP status; 0 if there was no reply. */
  readonly status: number;
  readonly shape: ErrorShape | undefined;
  /** The milliseconds that the server asks to wait before a retry. */
  readonly waitMs?: number | undefined;

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

/** Error texts of servers for a session, model, adapter, sampler or future that does not exist (any more). */
const LOST =
  /not loaded|stale request|(model|session|sampler|adapter|future|request)\b.{0,80}\b(not found|unknown|expired|no longer)|unknown (session|model|sampler)/i;

/** The error in an answer of status `status`. The four known servers have four forms. */
export function failureOf(request: string, status: number, body: unknown): TinkerError {
  const { text, shape } = errorText(body);
  const message = `${request}: the server answered ${status === 200 ? 'with an error' : status}: ${shorten(text)}`;
  return new TinkerError(kindOf(status, text, isUsers(body)), message, { status, shape });
}

/** The statuses of a server that has not begun with the request. */
const BUSY: readonly number[] = [408, 425, 429, 503, 529];

const isUsers = (body: unknown) =>
  typeof body === 'object' && body !== null && 'category' in body && /^user$/i.test(String(body.category));

function kindOf(status: number, text: string, isRefused: boolean): FailureKind {
  if (BUSY.includes(status)) return 'busy';
  if (isPassing(status)) return 'unreachable'; // a proxy says so, and may have passed the request on
  if (status === 410) return 'lost';
  if (/checkpoint\b.*not found/i.test(text)) return 'refused'; // no saved weights to recover from
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

/** The last line of a traceback has the error. */
function shorten(text: string): string {
  const lines = text.trim().split('\n');
  const summary = lines.length > 3 ? (lines.at(-1) as string) : lines.join(' ');
  return summary.length <= LONGEST_MESSAGE ? summary : `${summary.slice(0, LONGEST_MESSAGE)}...`;
}
