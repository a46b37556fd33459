import { resolve } from 'node:path';
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects, parquetSchema } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import { messageOf, TaskError } from '../../../base/errors.js';
import type { FileEntry } from '../../../base/platform.js';

/**
 * Reads the rows of a Parquet file in any compression, one row group at a time. Integers of 64 bits become numbers
 * if these are exact, else text; dates become text (ISO 8601).
 * @throws TaskError naming the file, and the row if the error is in one
 */
export async function* parquetRows(file: string): AsyncGenerator<FileEntry> {
  const from = async <T>(read: () => Promise<T>, as = ' as Parquet'): Promise<T> => {
    try {
      return await read();
    } catch (error) {
      throw new TaskError(`cannot be read${as} (${messageOf(error)})`, { file });
    }
  };
  const buffer = await from(() => asyncBufferFromFile(resolve(file)), '');
  const metadata = await from(() => parquetMetadataAsync(buffer));
  const names = await from(async () => parquetSchema(metadata).children.map(({ element }) => element.name));
  let row = 0;
  for (const { num_rows: count } of metadata.row_groups) {
    const options = { file: buffer, metadata, compressors, rowStart: row, rowEnd: row + Number(count) };
    const group: Record<string, unknown>[] = [];
    // Read the columns one by one: if several are damaged, the library rejects some promises that no code awaits.
    for (const name of names) {
      const column = await from(() => parquetReadObjects({ ...options, columns: [name] }));
      for (const [i, value] of column.entries()) group[i] = Object.assign(group[i] ?? {}, value);
    }
    for (const value of group) yield { place: { row: ++row }, value: plain(value) };
  }
}

function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]));
}
