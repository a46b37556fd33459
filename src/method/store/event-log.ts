import { createReadStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { createGunzip } from 'node:zlib';
import { type ChainedFile, type LogCursor, linesOf, UnfinishedLine } from '@drmas/engine/disk';
import { isObject, jsonObject, LogError, messageOf, parseWithDigits, RunError } from '@drmas/engine/errors';
import { EVENT_VERSION, type EventBody, type RunEvent } from '@drmas/engine/events';
import { type Clock, excerpt, type Files, type RunListener, systemClock } from '@drmas/engine/host';
import { jsonRows } from '@drmas/engine/platform';
import { eventFault } from './stored-shapes.js';

/** The append-only log of a run. It stamps each event, writes it, and passes it to the listeners in order. */
export class EventLog {
  readonly #file: ChainedFile;
  readonly #clock: Clock;
  readonly #listeners: readonly RunListener[];
  #held: RunEvent[] | undefined;

  /** @param options.hold Whether events wait in memory until `release`. Listeners get them at once */
  constructor(file: ChainedFile, options: { listeners?: readonly RunListener[]; clock?: Clock; hold?: boolean }) {
    this.#file = file;
    this.#held = options.hold === true ? [] : undefined;
    this.#clock = options.clock ?? systemClock;
    this.#listeners = options.listeners ?? [];
  }

  get cursor(): Required<LogCursor> {
    return this.#file.cursor;
  }

  /** Waits until all written events are on disk. @throws the error of a flush */
  flushed(): Promise<void> {
    return this.#file.flushed();
  }

  get held(): readonly RunEvent[] {
    return this.#held ?? [];
  }

  /** Writes the events that wait. From now on events are written at once. */
  release(): void {
    for (const event of this.#held?.splice(0) ?? []) this.#file.append(JSON.stringify(event));
    this.#held = undefined;
  }

  emit(body: EventBody): RunEvent {
    const event = { ...body, time: this.#clock.now().toISOString(), version: EVENT_VERSION };
    this.write(event);
    return event;
  }

  write(event: RunEvent): void {
    if (this.#held === undefined) this.#file.append(JSON.stringify(event));
    else this.#held.push(event);
    for (const listener of this.#listeners) void listener.event?.(event);
  }
}

/**
 * Reads the events of a log in order. A null in a measurement becomes NaN. A last line that was cut off during a write
 * is omitted.
 * @throws RunError if a line before the last is not an event
 */
export async function readEvents(files: Files, path: string): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  for await (const line of linesOf(files, path)) events.push(parseEvent(line, `${path}:${events.length + 1}`));
  return events;
}

function parseEvent(line: string, where: string): RunEvent {
  const event = jsonObject(line);
  if (typeof event?.type !== 'string')
    throw new RunError(`${where}: expected an event as one JSON object, got ${JSON.stringify(line.slice(0, 60))}`);
  const fault = eventFault(event);
  if (fault !== undefined) throw new RunError(`${where}: ${fault}`);
  return withNumbers(event as unknown as RunEvent);
}

/** Restores NaN in a step's measurements. JSON has null instead. */
function withNumbers(event: RunEvent): RunEvent {
  if (event.type !== 'step') return event;
  return { ...event, agents: numbersIn(event.agents), policies: numbersIn(event.policies) };
}

function numbersIn<T>(value: T): T {
  if (value === null) return Number.NaN as T;
  if (typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, numbersIn(inner)])) as T;
}

export type LogRow = Readonly<Record<string, unknown>>;

export interface LogPlace {
  readonly file: string;
  /** The line number, counted from 1. */
  readonly line: number;
}

const NEWLINE = 10;
const CHUNK_BYTES = 1 << 20;

/**
 * Reads the rows of a log one after another, with one row in memory at a time. The file has JSON lines (also gzipped,
 * `.gz`), or is one document (`.json`) with one row or an array of rows. Blank lines are skipped.
 * @returns True if a last line that was cut off during a write was omitted
 * @throws LogError with the file, and with the line of a row that is not a JSON object, or that a damaged gzip does not
 *   give
 */
export async function readRows(file: string, onRow: (row: LogRow, place: LogPlace) => void): Promise<boolean> {
  try {
    const status = await stat(file);
    if (!status.isFile() && !status.isDirectory()) throw new LogError('it is not a regular file', { file });
    return file.endsWith('.json') ? await readDocument(file, onRow) : await readLines(file, onRow);
  } catch (error) {
    if (error instanceof Error && 'code' in error && 'syscall' in error) throw new LogError(error.message, { file });
    throw error;
  }
}

async function readDocument(file: string, onRow: (row: LogRow, place: LogPlace) => void): Promise<false> {
  const text = textOf(await readFile(file), { file });
  if (/^\s*\[/.test(text))
    for (const { place, value } of jsonRows(text, file)) onRow(asRow(value, { file, ...place }), { file, ...place });
  else onRow(parseRow(text, { file, line: 1 }), { file, line: 1 });
  return false;
}

async function readLines(file: string, onRow: (row: LogRow, place: LogPlace) => void): Promise<boolean> {
  const bytes = createReadStream(file, { highWaterMark: CHUNK_BYTES });
  const stream = file.endsWith('.gz') ? bytes.pipe(createGunzip({ chunkSize: CHUNK_BYTES })) : bytes;
  bytes.once('error', (error) => stream.destroy(error));
  let line = 0;
  const unfinished = new UnfinishedLine();
  const tooLong = (problem: string) => new LogError(problem, { file, line: line + 1 });
  const pass = (bytes: Buffer) => {
    line++;
    const text = textOf(bytes, { file, line });
    if (text.trim() !== '') onRow(parseRow(text, { file, line }), { file, line });
  };
  const unpacked = stream as AsyncIterable<Buffer>;
  for await (const chunk of withPlace(unpacked, () => ({ file, line: line + 1 }))) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      unfinished.push(chunk.subarray(start, end), tooLong);
      pass(unfinished.take());
      start = end + 1;
    }
    if (start < chunk.length) unfinished.push(chunk.subarray(start), tooLong);
  }
  const rest = unfinished.take();
  if (line > 0 && isTorn(rest.toString('utf8'))) return true;
  pass(rest);
  return false;
}

/** The chunks of a stream. @throws LogError with the place if they cannot be unpacked */
async function* withPlace(chunks: AsyncIterable<Buffer>, place: () => LogPlace): AsyncGenerator<Buffer> {
  try {
    yield* chunks;
  } catch (error) {
    const isDamaged = error instanceof Error && 'code' in error && String(error.code).startsWith('Z_');
    throw isDamaged ? new LogError(`damaged gzip: ${error.message}`, place()) : error;
  }
}

/** The text of bytes, without a byte order mark. @throws LogError if it is not UTF-8 */
function textOf(bytes: Buffer, place: Partial<LogPlace>): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new LogError('expected UTF-8 text', place);
  }
}

/** True for a line that is neither valid JSON nor complete. A killed writer leaves such a line. */
function isTorn(rest: string): boolean {
  try {
    JSON.parse(rest);
    return false;
  } catch {
    return rest.startsWith('{') && !rest.trimEnd().endsWith('}');
  }
}

function parseRow(text: string, place: LogPlace): LogRow {
  let value: unknown;
  try {
    value = parseWithDigits(text);
  } catch (error) {
    const hint = /[[:,]\s*-?(NaN|Infinity)\b/.test(text) ? '; NaN and Infinity are not JSON' : '';
    throw new LogError(`expected one JSON object, got ${quoted(text)} (${messageOf(error)}${hint})`, place);
  }
  return asRow(value, place);
}

function asRow(value: unknown, place: LogPlace): LogRow {
  if (isObject(value)) return value;
  throw new LogError(`expected a JSON object, got ${quoted(JSON.stringify(value))}`, place);
}

const LONGEST_QUOTE = 61;

const quoted = (text: string): string => JSON.stringify(excerpt(text, LONGEST_QUOTE));

/** The value of a row at a dotted path. A field whose name contains the dots has precedence. */
export function fieldAt(row: LogRow, path: string): unknown {
  if (path in row || !path.includes('.')) return row[path];
  return path.split('.').reduce<unknown>((value, key) => (isObject(value) ? value[key] : undefined), row);
}

/** The finite number at a path. `true` counts as 1, `false` as 0. @throws LogError if there is none */
export function numberAt(row: LogRow, path: string, place: LogPlace): number {
  const value = fieldAt(row, path);
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  if (typeof value === 'boolean') return value ? 1 : 0;
  throw new LogError(`${path}: expected a number, got ${described(value, row, path)}`, place);
}

/**
 * The name at a path: a text, a number, or the JSON of another value (such as a prompt as messages). @throws LogError
 * if it is missing
 */
export function nameAt(row: LogRow, path: string, place: LogPlace): string {
  const value = fieldAt(row, path);
  if (typeof value === 'string') return value;
  if (value === undefined || value === null)
    throw new LogError(`${path}: expected a name, got ${described(value, row, path)}`, place);
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** The list of objects at a path. @throws LogError if there is none */
export function rowsAt(row: LogRow, path: string, place: LogPlace): readonly LogRow[] {
  const value = fieldAt(row, path);
  if (Array.isArray(value) && value.every(isObject)) return value;
  throw new LogError(`${path}: expected a list of objects, got ${described(value, row, path)}`, place);
}

const MOST_FIELDS = 20;

/** A value for an error message. If it is missing, the message lists the fields of the row. */
function described(value: unknown, row: LogRow, path: string): string {
  if (value !== undefined) return quoted(JSON.stringify(value));
  const keys = path.split('.');
  const inside = keys.findIndex((_, depth) => !isObject(fieldAt(row, keys.slice(0, depth + 1).join('.'))));
  const outer = keys.slice(0, inside).join('.');
  const fields = Object.keys((outer === '' ? row : fieldAt(row, outer)) as LogRow);
  const more = fields.length > MOST_FIELDS ? ` and ${fields.length - MOST_FIELDS} more` : '';
  const listed = fields.length === 0 ? 'no fields' : `${fields.slice(0, MOST_FIELDS).map(shortened).join(', ')}${more}`;
  return `nothing; ${outer === '' ? 'the row' : outer} has ${listed}`;
}

const shortened = (field: string) => excerpt(field, LONGEST_QUOTE);
