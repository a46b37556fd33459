/** The JSON values of files of traces: JSON lines, an array, or values on several lines. Memory holds one at a time. */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf, nestsTooDeep, parseExactly, TaskError } from '@drmas/engine/errors';
import { JsonSplitter } from '@drmas/engine/platform';
import { textChunks } from '../../teams/task-files.js';
import type { TracePlace, UnreadCounts } from './unread.js';

export interface TraceValue {
  /** `TOO_DEEP` in the place of one that functions cannot walk through. */
  readonly value: unknown;
  /** The characters of its JSON. */
  readonly length: number;
  /** The place of a part of the value, found by its id. Parts must be asked for in their order. */
  readonly placeOf: (id?: string) => TracePlace;
}

/** Stands for a value of JSON that is nested deeper than files may be. */
export const TOO_DEEP = Symbol('a value that is nested too deep');

/** The longest value in characters: four times as many would be longer than a string can be. */
const LONGEST = 2 ** 27;
/** The part of a file that shows its form. */
const SHOWN = 2 ** 24;

/**
 * The values of a file, or of all `.json`, `.jsonl` and `.ndjson` files of a folder. Counts what is no JSON.
 * @throws TaskError naming a file that cannot be read or is not UTF-8
 */
export async function* traceValues(path: string, unread: UnreadCounts): AsyncGenerator<TraceValue> {
  for (const file of await filesOf(path, unread)) yield* valuesOf(file, unread);
}

async function filesOf(path: string, unread: UnreadCounts): Promise<string[]> {
  const facts = await stat(path).catch((error: unknown) => {
    throw new TaskError(`cannot be read: ${messageOf(error)}`, { file: path });
  });
  if (!facts.isDirectory()) return [path];
  const names = (await readdir(path)).filter((name) => !name.startsWith('.')).sort();
  const isRead = (name: string) => /\.(jsonl?|ndjson)$/.test(name);
  for (const name of names.filter((each) => !isRead(each))) unread.add('file', { file: join(path, name) });
  const files = names.filter(isRead);
  if (files.length === 0) throw new TaskError('the folder has no .json, .jsonl or .ndjson file', { file: path });
  return files.map((name) => join(path, name));
}

async function* valuesOf(file: string, unread: UnreadCounts): AsyncGenerator<TraceValue> {
  const start = await startOf(file);
  const [first = ''] = start.split('\n', 1);
  const isOfLines = first.length < start.length && parsed(first) !== undefined;
  if (!isOfLines && start.startsWith('[')) return yield* entriesOf(file, unread);
  if (!isOfLines && start.startsWith('{')) {
    const whole = await wholeValue(file);
    if (whole !== undefined) return yield whole;
  }
  for await (const { line: first, lines } of piecesOf(file)) {
    const place = { file, line: first };
    const isWhole = lines.length > 1 && !lines.includes(undefined);
    const whole = isWhole ? valuesIn(lines.join('\n'), place) : undefined;
    if (whole !== undefined) yield* whole;
    else yield* lines.flatMap((text, i) => valuesOfLine(text, { file, line: first + i }, unread));
  }
}

function valuesOfLine(text: string | undefined, place: TracePlace, unread: UnreadCounts): TraceValue[] {
  const values = text === undefined ? undefined : valuesIn(text, place);
  if (values === undefined) unread.add('line', place);
  return values ?? [];
}

function valuesIn(text: string, place: TracePlace): TraceValue[] | undefined {
  const alone = parsed(text);
  const { parts, rest } = alone === undefined ? partsOf(text) : { parts: [text], rest: '' };
  const values = alone === undefined ? parts.map(parsed) : [alone];
  if (rest !== '' || values.includes(undefined)) return undefined;
  return values.map((value, i) => ({ value, length: parts[i]?.length ?? 0, placeOf: () => place }));
}

/** The characters between two values: white space, commas, byte order marks, the separators of RFC 7464. */
const BETWEEN = /[\s,\p{Cc}\ufeff]*/uy;

/** How each bracket outside of texts changes the depth, and its end. */
function* brackets(text: string, from = 0): Generator<{ readonly step: 1 | -1; readonly end: number }> {
  const marks = /["\\[\]{}]/g;
  marks.lastIndex = from;
  let inText = false;
  for (let mark = marks.exec(text); mark !== null; mark = marks.exec(text)) {
    const [sign] = mark;
    if (sign === '\\') marks.lastIndex++;
    else if (sign === '"') inText = !inText;
    else if (!inText) yield { step: sign === '{' || sign === '[' ? 1 : -1, end: marks.lastIndex };
  }
}

/** The objects and lists that follow each other in a text, and the rest behind them. */
function partsOf(text: string): { readonly parts: readonly string[]; readonly rest: string } {
  const parts: string[] = [];
  for (let at = 0; ; ) {
    BETWEEN.lastIndex = at;
    BETWEEN.exec(text);
    at = BETWEEN.lastIndex;
    const end = text[at] === '{' || text[at] === '[' ? endOfValue(text, at) : undefined;
    if (end === undefined) return { parts, rest: text.slice(at) };
    parts.push(text.slice(at, end));
    at = end;
  }
}

function endOfValue(text: string, from: number): number | undefined {
  let depth = 0;
  for (const { step, end } of brackets(text, from)) {
    depth += step;
    if (depth === 0) return end;
  }
  return undefined;
}

/** How a line begins that continues the value of the line before: exporters print values with indentation. */
const INDENTED = /^[^\S\r\n]+\S/;
const CLOSES = /^[}\]]/;

/** The brackets that are open after a line. No text of JSON goes on in the next line. */
function depthAfter(line: string, depth: number): number {
  if (depth === 0 && line.startsWith('{') && line.trimEnd().endsWith('}')) return 0;
  for (const { step } of brackets(line)) depth = Math.max(0, depth + step);
  return depth;
}

const isRow = (line: string) => /^[{[]/.test(line) && parsed(line) !== undefined;

/** Each line with the lines after it that continue its value. A line that is a value itself ends one without an end. */
async function* piecesOf(
  file: string,
): AsyncGenerator<{ readonly line: number; readonly lines: (string | undefined)[] }> {
  let [line, length] = [1, 0];
  let lines: (string | undefined)[] = [];
  /** In a value without indentation, each line continues it until its brackets are closed. */
  let [depth, isFlat] = [0, true];
  for await (const text of linesOf(file)) {
    const isIndented = INDENTED.test(text ?? '');
    // The entries of a list may stand without indentation, each with its own lines indented.
    const isEntry = depth === 1 && lines[0]?.trim() === '[';
    const goesOn = isIndented || isEntry || CLOSES.test(text ?? '') || (isFlat && depth > 0 && !isRow(text ?? ''));
    if (lines.length > 0 && (!goesOn || length > LONGEST)) {
      yield { line, lines };
      line += lines.length;
      [lines, length, depth, isFlat] = [[], 0, 0, true];
    }
    depth = depthAfter(text ?? '', depth);
    isFlat &&= !isIndented;
    lines.push(text);
    length += text?.length ?? 0;
  }
  yield { line, lines };
}

/** The first line that is not blank, with what follows it in memory. */
async function startOf(file: string): Promise<string> {
  let start = '';
  for await (const text of textChunks(file)) {
    start = `${start}${text}`.trimStart();
    if (start.includes('\n') || start.length > SHOWN) return start;
  }
  return start;
}

function parsed(text: string): unknown {
  try {
    if (!nestsTooDeep(text)) return parseExactly(text);
    JSON.parse(text); // it parses any depth
    return TOO_DEEP;
  } catch {
    return undefined;
  }
}

/** The entries of an array, one after another, and those of the arrays and lines behind it. */
async function* entriesOf(file: string, unread: UnreadCounts): AsyncGenerator<TraceValue> {
  const splitter = new JsonSplitter(file, (text) => text, { goesOn: true });
  const read = function* (rows: ReturnType<typeof splitter.push>): Generator<TraceValue> {
    for (const { place, value: text } of rows) yield* valuesOfLine(String(text), { file, ...place }, unread);
  };
  for await (const text of textChunks(file)) yield* read(splitter.push(text));
  let last: ReturnType<typeof splitter.end> = [];
  try {
    last = splitter.end();
  } catch (error) {
    if (!(error instanceof TaskError)) throw error;
    unread.add('line', { file, ...(error.line === undefined ? {} : { line: error.line }) }); // the array has no end
  }
  yield* read(last);
}

async function wholeValue(file: string): Promise<TraceValue | undefined> {
  const pieces: string[] = [];
  let length = 0;
  for await (const text of textChunks(file)) {
    length += text.length;
    if (length > LONGEST) return undefined;
    pieces.push(text);
  }
  const text = pieces.join('');
  const value = parsed(text);
  if (value === undefined) return undefined;
  let [at, line] = [0, 1];
  let places: ReadonlyMap<string, number[]> | undefined;
  const placeOf = (id?: string) => {
    places ??= placesOfIds(text);
    const ofId = places.get(id ?? '') ?? [];
    while ((ofId.at(-1) ?? at) < at) ofId.pop();
    const found = ofId.at(-1);
    if (found !== undefined) {
      line += text.slice(at, found).split('\n').length - 1;
      at = found;
    }
    return { file, line };
  };
  return { value, length, placeOf };
}

/** A field for the id of a span, which is no longer. Other fields name it too, such as the parents of other spans. */
const ID_FIELD = /"(?:context\.)?(?:spanId|spanID|span_id|id)"\s*:\s*("(?:[^"\\]|\\.){1,999}")/g;

/** The places of the fields with each id in valid JSON, the last first. */
function placesOfIds(text: string): Map<string, number[]> {
  const places = new Map<string, number[]>();
  for (const { index, 1: value = '' } of text.matchAll(ID_FIELD)) {
    const id: string = JSON.parse(value);
    const others = places.get(id);
    if (others === undefined) places.set(id, [index]);
    else others.push(index);
  }
  for (const ofId of places.values()) ofId.reverse();
  return places;
}

/** The lines of a file; undefined for one that is too long. */
export async function* linesOf(file: string): AsyncGenerator<string | undefined> {
  let pieces: string[] = [];
  let length = 0;
  const add = (piece: string) => {
    length += piece.length;
    if (length > LONGEST) pieces = [];
    else pieces.push(piece);
  };
  const take = () => {
    const line = length > LONGEST ? undefined : pieces.join('');
    [pieces, length] = [[], 0];
    return line;
  };
  for await (const text of textChunks(file)) {
    const [end = '', ...lines] = text.split('\n');
    add(end);
    for (const line of lines) {
      yield take();
      add(line);
    }
  }
  yield take();
}
