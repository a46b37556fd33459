import type { Episode, Failure } from './episode.js';

/** The most characters of a message: messages quote wrong values, which may be as long as a file. */
const LONGEST_MESSAGE = 5000;

/**
 * The base class of all errors that drmas raises on purpose. The subclass names the part of drmas or of its
 * surroundings that failed. `exitCode` is the exit code of the command line (2: the request was wrong and nothing was
 * started; 1: the run failed).
 */
export abstract class DrmasError extends Error {
  abstract readonly exitCode: 1 | 2;
  constructor(message: string) {
    super(message.length <= LONGEST_MESSAGE ? message : `${message.slice(0, LONGEST_MESSAGE)}…`);
  }
  override get name(): string {
    return this.constructor.name;
  }
}

/**
 * Raised when a recipe, an override or a flag is wrong. `path` is the dotted path of the value, or empty if there is
 * none.
 */
export class RecipeError extends DrmasError {
  readonly exitCode = 2;
  readonly path: string;
  constructor(message: string, path = '') {
    super(path === '' ? message : `${path}: ${message}`);
    this.path = path;
  }
}

/** A place in a file: a line, or a row of a file that has no lines (Parquet). Both count from 1. */
export interface FilePlace {
  readonly file?: string;
  readonly line?: number;
  readonly row?: number;
}

/** The place as text: `file:line`, or `file: row n` for a file without lines. */
export function filePlace({ file = '', line, row }: FilePlace): string {
  if (line !== undefined) return `${file}:${line}`;
  return row === undefined ? file : `${file}: row ${row}`;
}

/** Raised when something is wrong at a place in a user's file; the message begins with that place. */
abstract class FileError extends DrmasError {
  readonly exitCode = 2;
  readonly file: string | undefined;
  readonly line: number | undefined;
  /** The row, for a file without lines. */
  readonly row: number | undefined;
  constructor(message: string, where: FilePlace = {}) {
    super(where.file === undefined ? message : `${filePlace(where)}: ${message}`);
    this.file = where.file;
    this.line = where.line;
    this.row = where.row;
  }
}

/** Raised when a task file is unreadable or malformed. */
export class TaskError extends FileError {}

/** Raised when a log of rollouts, of drmas or of another trainer, is unreadable or malformed. */
export class LogError extends FileError {}

/** Raised when a run directory cannot be created, read or continued. */
export class RunError extends DrmasError {
  readonly exitCode = 2;
}

/** Raised when weights, optimiser state or a model's configuration on disk are missing, damaged or of another shape. */
export class CheckpointError extends DrmasError {
  readonly exitCode = 2;
}

/**
 * Raised when a model cannot be read from a hub or its cache. `reason`: `denied` (401, 403: gated, private, or a wrong
 * token), `missing` (no such model, revision or file), `offline` (the network is switched off and the cache lacks the
 * model), `unreachable` (no answer, or the server failed), `disk` (the cache cannot be written or is full), `damaged`
 * (the received bytes differ from the announced ones).
 */
export class HubError extends CheckpointError {
  readonly reason: 'denied' | 'missing' | 'offline' | 'unreachable' | 'disk' | 'damaged';
  constructor(reason: HubError['reason'], message: string) {
    super(message);
    this.reason = reason;
  }
}

/**
 * Raised when a store that keeps runs for many machines cannot be used. `reason`: `denied` (no credentials, or too few
 * rights), `missing` (no such bucket or file), `region` (the bucket is in another region), `unreachable` (no answer, or
 * a server failed), `damaged` (a file differs from the one that was written).
 */
export class StoreError extends DrmasError {
  readonly exitCode = 2;
  readonly reason: 'denied' | 'missing' | 'region' | 'unreachable' | 'damaged';
  constructor(reason: StoreError['reason'], message: string) {
    super(message);
    this.reason = reason;
  }
}

/** Raised for text that a tokenizer cannot represent, and for a vocabulary that does not fit its model. */
export class TokenizerError extends DrmasError {
  readonly exitCode = 2;
}

/** Raised when a sampling or training backend fails, or lacks the capability that a call needs. */
export class BackendError extends DrmasError {
  readonly exitCode = 1;
}

/**
 * Raised when a GPU cannot compute: `absent` (the package or an adapter is missing), `lost` (the driver removed it),
 * `memory` (it has too little), `refused` (it rejects a shader or a command).
 */
export class DeviceError extends BackendError {
  readonly reason: 'absent' | 'lost' | 'memory' | 'refused';
  constructor(reason: DeviceError['reason'], message: string) {
    super(message);
    this.reason = reason;
  }
}

/**
 * Raised when the endpoint of a frozen agent answers no request at all, because it refuses the client or is gone. It
 * ends the run; other failures of an endpoint end only one episode.
 */
export class EndpointError extends BackendError {}

/** Whether the model behind an agent is gone for good: this ends the run; other failures end only an episode. */
export const isGoneForGood = (error: unknown): error is EndpointError | DeviceError =>
  error instanceof EndpointError || error instanceof DeviceError;

/** The error codes of OpenEnv's protocol, and the ways in which a world fails without an answer. */
export type WorldErrorCode =
  | 'INVALID_JSON'
  | 'UNKNOWN_TYPE'
  | 'VALIDATION_ERROR'
  | 'EXECUTION_ERROR'
  | 'CAPACITY_REACHED'
  | 'FACTORY_ERROR'
  | 'SESSION_ERROR'
  | 'UNREACHABLE'
  | 'CLOSED'
  | 'TIMEOUT'
  | 'BAD_ANSWER';

/**
 * Raised when an environment server fails. `code` is the server's own, or: `UNREACHABLE` (nobody listens, or the server
 * refuses), `CLOSED` (the world ended before its answer), `TIMEOUT` (no answer in time), `BAD_ANSWER` (an answer
 * against the protocol). After VALIDATION_ERROR and EXECUTION_ERROR the world goes on.
 */
export class WorldError extends DrmasError {
  readonly exitCode = 1;
  readonly code: WorldErrorCode;
  constructor(code: WorldErrorCode, message: string) {
    super(`${message} (${code})`);
    this.code = code;
  }
}

/**
 * Raised when a server of tools fails. `reason`: `unreachable` (it does not start, or does not answer when it is
 * opened), `timeout` (a call had no answer in time), `refused` (the arguments are no JSON object, or the server answers
 * with an error of the protocol, as for an unknown tool), `closed` (a call failed in another way: the server has ended,
 * or it answers with an HTTP error such as 401). Wrong arguments that the server reports as the tool's result raise
 * nothing: the agent reads them.
 */
export class ToolServerError extends DrmasError {
  readonly exitCode = 1;
  readonly reason: 'unreachable' | 'closed' | 'timeout' | 'refused';
  constructor(reason: ToolServerError['reason'], message: string) {
    super(message);
    this.reason = reason;
  }
}

/**
 * Raised when drmas rejects a server or its answer: `redirect` (the server redirects the request to another server, or
 * in a circle), `too-long` (the answer exceeds the size limit), `untrusted` (the server's certificate is not trusted,
 * or it speaks no TLS). The same request fails again.
 */
export class AnswerError extends BackendError {
  readonly reason: 'redirect' | 'too-long' | 'untrusted';
  constructor(reason: AnswerError['reason'], message: string) {
    super(message);
    this.reason = reason;
  }
}

/**
 * Raised by all calls of an agent once its episode is over: ended, failed or interrupted; `signal` fires with it too.
 * Its name is the name of an aborted request, so that frameworks do not retry.
 */
export class EpisodeOverError extends DrmasError {
  readonly exitCode = 1;
  constructor(message: string) {
    // Each episode ends with such an error, and hardly any program reads it. A stack would take an eighth of the time
    // of an episode of one turn, the model's work aside. `stackTraceLimit` is V8's; other engines have none. It cannot
    // be set if the program has frozen its built-in objects (`--frozen-intrinsics`, SES).
    const { stackTraceLimit = 10 } = Error as { readonly stackTraceLimit?: number };
    Reflect.set(Error, 'stackTraceLimit', 0);
    super(message);
    Reflect.set(Error, 'stackTraceLimit', stackTraceLimit);
  }
  override get name(): string {
    return 'AbortError';
  }
}

/**
 * Raised when drmas refuses a request over HTTP. Each dialect formats it, with the HTTP status and with `code`, a word
 * for programs.
 */
export class DialectError extends DrmasError {
  readonly exitCode = 1;
  readonly status: number;
  readonly code: string;
  /** The field of the request that is wrong, if it is one. */
  readonly field: string | undefined;
  constructor(status: number, code: string, message: string, field?: string) {
    super(message);
    this.status = status;
    this.code = code;
    this.field = field;
  }
}

/**
 * Raised when code calls a model but belongs to none of the episodes that are being played, or when no episode is being
 * played. Frameworks do not retry such a call.
 */
export class UnattributedCallError extends DialectError {
  constructor(message: string) {
    super(400, 'unattributed_call', message);
  }
}

/**
 * Raised when a loaded team fails at a task: `failure` gives the reason and place, `episode` holds its turns so far.
 */
export class EpisodeError extends DrmasError {
  readonly exitCode = 1;
  readonly failure: Failure;
  readonly episode: Episode;
  constructor(failure: Failure, episode: Episode) {
    super(`the episode failed (${failure.reason}): ${failure.message}`);
    this.failure = failure;
    this.episode = episode;
  }
}

/**
 * Raised when training cannot continue, such as after three NaN steps in a row. The last checkpoint is intact.
 */
export class TrainingError extends DrmasError {
  readonly exitCode = 1;
}

/**
 * Raised when an update has left a weight, or a number of the optimiser's state, that is not finite, or when such a
 * number would be saved. The message names policy and tensor. The last checkpoint is intact.
 */
export class NonFiniteError extends TrainingError {}

/** Raised when a function is called with wrong arguments: sizes that do not match, a number outside its range. */
export class ArgumentError extends DrmasError {
  readonly exitCode = 2;
}

/** Fields of thrown objects that tell a cause. Others, such as headers, may hold keys. */
const TELLING = ['name', 'code', 'status', 'statusCode', 'type', 'error', 'detail', 'reason'];

/** The message of any thrown value, even of one that cannot be read. */
export function messageOf(error: unknown): string {
  try {
    if (error instanceof Error) return String(error.message) || partsOf(error);
    const text = String(error);
    if (typeof error !== 'object' || error === null || !/^\[object \w+\]$/.test(text)) return text;
    // Clients throw plain objects, whose text would be [object Object].
    const { message, ...fields } = error as Readonly<Record<string, unknown>>;
    if (typeof message === 'string' && message !== '') return message;
    const told = TELLING.filter((name) => ['string', 'number'].includes(typeof fields[name]));
    if (told.length > 0) return told.map((name) => `${name} ${fields[name]}`).join(', ');
    const names = Object.keys(fields);
    return names.length === 0 ? text : `an object with the fields ${names.slice(0, MOST_FIELDS).join(', ')}`;
  } catch {
    return 'the thrown value cannot be read';
  }
}

/** The messages of an error without one of its own: Node so reports that none of a host's addresses answers. */
function partsOf(error: Error): string {
  const errors: unknown = 'errors' in error ? error.errors : [];
  return [...new Set(Array.isArray(errors) ? errors.map(messageOf) : [])].join(', ');
}

/** The most fields of a thrown object that a message names. */
const MOST_FIELDS = 8;

/** The messages of an error and of its causes. Clients report "fetch failed", and the cause gives the reason. */
export function reasonOf(error: unknown): string {
  const inner = error instanceof Error && error.cause instanceof Error ? reasonOf(error.cause) : '';
  const message = messageOf(error);
  return inner === '' || message.includes(inner) ? message : `${message} (${inner})`;
}
