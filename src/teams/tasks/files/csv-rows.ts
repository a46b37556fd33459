import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { CsvError, parse } from 'csv-parse';
import { TaskError } from '../../../base/errors.js';
import type { FileEntry } from '../../../base/platform.js';
import { textChunks } from './text-chunks.js';

/** The longest row in characters; a quote that is never closed makes the rest of a file one row. */
const LONGEST_ROW = 2 ** 26;

interface Parsed {
  readonly record: Readonly<Record<string, string>>;
  readonly info: { readonly lines: number };
}

/**
 * Reads the rows of a CSV file (RFC 4180: quotes, doubled inside quotes; fields may contain line breaks) as objects.
 * Their keys are the names in the first line. All values are text.
 * @throws TaskError naming file and line
 */
export async function* csvRows(file: string, delimiter: string): AsyncGenerator<FileEntry> {
  const columns = (names: string[]) => {
    const seen = new Set<string>();
    const twice = names.find((name) => seen.size === seen.add(name).size);
    if (twice === undefined) return names;
    throw new TaskError(`expected a name for each column, found ${JSON.stringify(twice)} twice`, { file, line: 1 });
  };
  const parser = parse({
    delimiter,
    columns,
    info: true,
    skip_empty_lines: true,
    record_delimiter: ['\r\n', '\n'],
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
