import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createGunzip } from 'node:zlib';
import { LogError, messageOf } from '../core/errors.js';
import { jsonRows } from '../tasks/files/json-rows.js';

/** One JSON object of a log. */
export type Row = Readonly<Record<string, unknown>>;

/** Where a row stands, for error messages. */
export interface Place {
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
}

const NEWLINE = 10;
const CHUNK_BYTES = 1 << 20;

/**
 * Hands over the rows of a log one after another, so that no more than one lies in memory: JSON lines (also gzipped, `.gz`),
 * or a whole document (`.json`) that is one row or an array of them. Blank lines are skipped.
 * @returns Whether a last line that was cut off in mid-write was left out
 * @throws LogError naming file and line of what is not a JSON object, or the file that cannot be read
 */
export async function readRows(file: string, onRow: (row: Row, place: Place) => void): Promise<boolean> {
  try {
    return file.endsWith('.json') ? await readDocument(file, onRow) : await readLines(file, onRow);
  } catch (error) {
    if (error instanceof Error && 'code' in error && 'syscall' in error) throw new LogError(error.message, { file });
    throw error;
  }
}

async function readDocument(file: string, onRow: (row: Row, place: Place) => void): Promise<false> {
  const text = await readFile(file, 'utf8');
  if (/^\s*\[/.test(text))
    for (const { place, value } of jsonRows(text, file)) onRow(asRow(value, { file, ...place }), { file, ...place });
  else onRow(parseRow(text, { file, line: 1 }), { file, line: 1 });
  return false;
}

async function readLines(file: string, onRow: (row: Row, place: Place) => void): Promise<boolean> {
  const bytes = createReadStream(file, { highWaterMark: CHUNK_BYTES });
  const stream = file.endsWith('.gz') ? bytes.pipe(createGunzip({ chunkSize: CHUNK_BYTES })) : bytes;
  bytes.once('error', (error) => stream.destroy(error));
  let line = 0;
  const begun: Buffer[] = [];
  const take = (text: string) => {
    line++;
    if (text.trim() !== '') onRow(parseRow(text, { file, line }), { file, line });
  };
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      if (begun.length === 0) take(chunk.toString('utf8', start, end));
      else {
        begun.push(chunk.subarray(start, end));
        take(Buffer.concat(begun.splice(0)).toString('utf8'));
      }
      start = end + 1;
    }
    if (start < chunk.length) begun.push(chunk.subarray(start));
  }
  const rest = Buffer.concat(begun).toString('utf8');
  if (line > 0 && isTorn(rest)) return true;
  take(rest);
  return false;
}

/** Not JSON, and not closed: what a writer leaves behind that was stopped in the middle of a line. */
function isTorn(rest: string): boolean {
  try {
    JSON.parse(rest);
    return false;
  } catch {
    return rest.startsWith('{') && !rest.trimEnd().endsWith('}');
  }
}

function parseRow(text: string, place: Place): Row {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const hint = /[[:,]\s*-?(NaN|Infinity)\b/.test(text) ? '; NaN and Infinity are not JSON' : '';
    throw new LogError(`expected one JSON object, got ${excerpt(text)} (${messageOf(error)}${hint})`, place);
  }
  return asRow(value, place);
}

function asRow(value: unknown, place: Place): Row {
  if (isRow(value)) return value;
  throw new LogError(`expected a JSON object, got ${excerpt(JSON.stringify(value))}`, place);
}

export const isRow = (value: unknown): value is Row =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The beginning of a text. */
function excerpt(text: string): string {
  const flat = text.trim();
  return JSON.stringify(flat.length > 60 ? `${flat.slice(0, 60)}…` : flat);
}

/** What a row holds at a dotted path; a field with dots in its own name comes first. */
export function valueAt(row: Row, path: string): unknown {
  if (path in row || !path.includes('.')) return row[path];
  return path.split('.').reduce<unknown>((value, key) => (isRow(value) ? value[key] : undefined), row);
}

/** A finite number; truth counts 1. @throws LogError */
export function numberAt(row: Row, path: string, place: Place): number {
  const value = valueAt(row, path);
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  if (typeof value === 'boolean') return value ? 1 : 0;
  throw new LogError(`${path}: expected a number, got ${described(value)}`, place);
}

/** A name: a text, a number, or anything else (a prompt as messages) as JSON. @throws LogError when it is missing */
export function nameAt(row: Row, path: string, place: Place): string {
  const value = valueAt(row, path);
  if (typeof value === 'string') return value;
  if (value === undefined || value === null)
    throw new LogError(`${path}: expected a name, got ${described(value)}`, place);
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** @throws LogError */
export function rowsAt(row: Row, path: string, place: Place): readonly Row[] {
  const value = valueAt(row, path);
  if (Array.isArray(value) && value.every(isRow)) return value;
  throw new LogError(`${path}: expected a list of objects, got ${described(value)}`, place);
}

function described(value: unknown): string {
  return value === undefined ? 'nothing' : excerpt(JSON.stringify(value));
}
