import { extname } from 'node:path';
import { type FileEntry, JsonSplitter } from '../../../base/platform.js';
import { csvRows } from './csv-rows.js';
import { parquetRows } from './parquet-rows.js';
import { textChunks } from './text-chunks.js';

export const FILE_FORMATS = ['json', 'csv', 'parquet'] as const;

/** The formats of task files; `json` is an array, or one value a line. */
export type FileFormat = (typeof FILE_FORMATS)[number];

/** The name of a row in each format, for error messages. */
export const ROW_NAMES = { json: 'a JSON object', csv: 'a row', parquet: 'a row' } satisfies Record<FileFormat, string>;

export interface FileRowOptions {
  /** The format; by default the file's extension decides. */
  readonly format?: FileFormat | null | undefined;
  /** The delimiter of a CSV file's columns; by default a comma, in `.tsv` a tab. */
  readonly delimiter?: string | null | undefined;
}

/** The format of a file by its extension: `.csv`, `.tsv`, `.parquet`; all others are JSON. */
export function formatOf(file: string): FileFormat {
  const extension = extname(file).toLowerCase();
  if (extension === '.csv' || extension === '.tsv') return 'csv';
  return extension === '.parquet' ? 'parquet' : 'json';
}

/**
 * Reads the rows of a file one after another. Memory holds a piece of a megabyte and one row at a time, or one row
 * group of a Parquet file. Relative paths start at the working directory.
 * @throws TaskError naming the file and the line or row
 */
export function fileRows(file: string, { format, delimiter }: FileRowOptions = {}): AsyncGenerator<FileEntry> {
  switch (format ?? formatOf(file)) {
    case 'csv':
      return csvRows(file, delimiter ?? (extname(file).toLowerCase() === '.tsv' ? '\t' : ','));
    case 'parquet':
      return parquetRows(file);
    case 'json':
      return jsonFileRows(file);
  }
}

async function* jsonFileRows(file: string): AsyncGenerator<FileEntry> {
  const splitter = new JsonSplitter(file);
  for await (const text of textChunks(file)) yield* splitter.push(text);
  yield* splitter.end();
}
