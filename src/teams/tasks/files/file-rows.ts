/** The rows of task files: JSON, CSV and Parquet. */
import { open, stat } from 'node:fs/promises';
import { extname, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { messageOf, TaskError } from '@drmas/engine/errors';
import { type FileEntry, JsonSplitter } from '@drmas/engine/platform';
import { CsvError, parse } from 'csv-parse';

export const FILE_FORMATS = ['json', 'csv', 'parquet'] as const;

/** The formats of task files; `json` is an array, or one value a line. */
export type FileFormat = (typeof FILE_FORMATS)[number];

export const ROW_NAMES = { json: 'a JSON object', csv: 'a row', parquet: 'a row' } satisfies Record<FileFormat, string>;

export interface FileRowOptions {
  /** The format; by default the file's extension decides. */
  readonly format?: FileFormat | null | undefined;
  /** The delimiter of a CSV file's columns; by default a comma, in `.tsv` a tab. */
  readonly delimiter?: string | null | undefined;
  /** Reads the text of an entry of JSON. Default: whole numbers that JavaScript would round become text. */
  readonly parse?: ((text: string) => unknown) | undefined;
}

/** The format of a file by its extension: `.csv`, `.tsv`, `.parquet`; all others are JSON. */
export function formatOf(file: string): FileFormat {
  const extension = extname(file).toLowerCase();
  if (extension === '.csv' || extension === '.tsv') return 'csv';
  return extension === '.parquet' ? 'parquet' : 'json';
}

/**
 * Reads the rows of a file one after another. Memory holds a small piece and one row at a time, or one row
 * group of a Parquet file. Relative paths start at the working directory.
 * @throws TaskError naming the file and the line or row
 */
export function fileRows(file: string, { format, delimiter, parse }: FileRowOptions = {}): AsyncGenerator<FileEntry> {
  switch (format ?? formatOf(file)) {
    case 'csv':
      return csvRows(file, delimiter ?? undefined);
    case 'parquet':
      return parquetFileRows(file);
    case 'json':
      return jsonFileRows(file, parse);
  }
}

/** The reader's decompressors are WebAssembly, which other commands need not wait for. */
async function* parquetFileRows(file: string): AsyncGenerator<FileEntry> {
  const { parquetRows } = await import('./parquet-rows.js');
  yield* parquetRows(file);
}

async function* jsonFileRows(file: string, parse?: FileRowOptions['parse']): AsyncGenerator<FileEntry> {
  const splitter = new JsonSplitter(file, parse);
  for await (const text of textChunks(file)) yield* splitter.push(text);
  yield* splitter.end();
}

/** @throws TaskError for a pipe or a device: a second reading would find no more than what the first one has left */
async function requireRegular(file: string): Promise<void> {
  const status = await stat(resolve(file));
  if (!status.isFile() && !status.isDirectory())
    throw new TaskError('is no regular file, and is read more than once: write it to one first', { file });
}

/** The bytes that are read at once. V8 keeps longer texts apart, and collects them late. */
const CHUNK_BYTES = 1 << 16;
const isPacked = (bytes: Uint8Array | undefined) => bytes?.[0] === 0x1f && bytes[1] === 0x8b;

/**
 * Reads the text of a file piece by piece, without its byte order mark. A relative path starts at the working
 * directory.
 * @throws TaskError naming the file if it cannot be read, is no regular file, is not UTF-8, or loses its content
 *   meanwhile. It may grow
 */
export async function* textChunks(file: string): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const decode = (bytes?: Uint8Array) => {
    try {
      return bytes === undefined ? decoder.decode() : decoder.decode(bytes, { stream: true });
    } catch {
      throw new TaskError(isPacked(bytes) ? 'is packed with gzip: unpack it first' : 'expected UTF-8 text', { file });
    }
  };
  try {
    await requireRegular(file);
    const handle = await open(resolve(file));
    try {
      const before = await handle.stat();
      const bytes = Buffer.allocUnsafe(CHUNK_BYTES); // one for all: collecting one a piece takes more memory
      const readOn = () => handle.read(bytes, 0, bytes.length); // Yarn's Plug'n'Play needs all three
      for (let read = await readOn(); read.bytesRead > 0; read = await readOn())
        yield decode(bytes.subarray(0, read.bytesRead));
      const after = await handle.stat();
      if (after.size < before.size || (after.size === before.size && after.mtimeMs !== before.mtimeMs))
        throw new TaskError('has changed while it was read: type the command again when it is whole', { file });
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (error instanceof Error && 'syscall' in error)
      throw new TaskError(`cannot be read (${messageOf(error)})`, { file });
    throw error;
  }
  yield decode();
}

/** The longest row in characters; a quote that is never closed makes the rest of a file one row. */
const LONGEST_ROW = 2 ** 26;

interface Parsed {
  readonly record: Readonly<Record<string, string>>;
  readonly info: { readonly lines: number };
}

async function beginOf(file: string): Promise<string> {
  for await (const text of textChunks(file)) return text;
  return '';
}

/**
 * The delimiter if nobody has set it.
 * @throws TaskError if the first line has another one, such as the semicolon of Excel in many countries
 */
function usualDelimiter(begin: string, file: string): string {
  const delimiter = extname(file).toLowerCase() === '.tsv' ? '\t' : ',';
  const [line = ''] = begin.replaceAll(/"[^"]*"/g, '').split(/[\r\n]/, 1);
  const other = line.includes(delimiter) ? undefined : /[;,\t|]/.exec(line)?.[0];
  if (other === undefined) return delimiter;
  const [wanted, found] = [delimiter, other].map((text) => JSON.stringify(text));
  throw new TaskError(
    `expected ${wanted} between columns, found ${found}: save the file with ${wanted}, or set delimiter: ${found} for its tasks (${wanted} if it has one column)`,
    { file, line: 1 },
  );
}

/**
 * Reads the rows of a CSV file (RFC 4180: quotes, doubled inside quotes; fields may contain line breaks) as objects.
 * Their keys are the names in the first line. All values are text.
 * @throws TaskError naming file and line
 */
async function* csvRows(file: string, chosen: string | undefined): AsyncGenerator<FileEntry> {
  const columns = (names: string[]) => {
    const seen = new Set<string>();
    const twice = names.find((name) => seen.size === seen.add(name).size);
    if (twice === undefined) return names;
    throw new TaskError(`expected a name for each column, found ${JSON.stringify(twice)} twice`, { file, line: 1 });
  };
  const begin = await beginOf(file);
  const parser = parse({
    delimiter: chosen ?? usualDelimiter(begin, file),
    columns,
    info: true,
    skip_empty_lines: true,
    // Lines of "CSV (Macintosh)" of Excel end with a carriage return alone.
    record_delimiter: /\r./.test(begin) && !begin.includes('\n') ? '\r' : ['\r\n', '\n'],
    max_record_size: LONGEST_ROW,
  });
  // The parser reports the stream's failure too.
  pipeline(Readable.from(textChunks(file)), parser).catch(() => {});
  try {
    for await (const { record, info } of parser as AsyncIterable<Parsed>) {
      // The parser knows the line where a row ends; the row may have begun earlier, since its fields may contain line
      // breaks.
      const within = Object.values(record).reduce((sum, text) => sum + text.split('\n').length - 1, 0);
      yield { place: { line: info.lines - within }, value: record };
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const at = 'lines' in error && typeof error.lines === 'number' ? { line: error.lines } : {};
    throw new TaskError(error.message.replaceAll(/\s+/g, ' '), { file, ...at });
  }
}
