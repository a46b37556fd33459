/** The rows of Parquet files, with values as a JSON file would have them. */
import { resolve } from 'node:path';
import { messageOf, TaskError } from '@drmas/engine/errors';
import type { FileEntry } from '@drmas/engine/platform';
import {
  asyncBufferFromFile,
  parquetMetadataAsync,
  parquetReadObjects,
  parquetSchema,
  type SchemaElement,
  type SchemaTree,
} from 'hyparquet';
import { compressors } from 'hyparquet-compressors';

/**
 * Reads the rows of a Parquet file in any compression, one row group at a time. Integers of 64 bits and decimals become
 * numbers if these are exact, else text; numbers of 32 bits become the shortest ones; times become text (ISO 8601),
 * dates text such as 2024-02-29.
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
  const columns = await from(async () => parquetSchema(metadata).children.map(columnOf));
  const twice = columns.find(({ name }, i) => columns.findIndex((other) => other.name === name) < i);
  if (twice !== undefined)
    throw new TaskError(`expected a name for each column, found ${JSON.stringify(twice.name)} twice`, { file });
  let row = 0;
  for (const { num_rows: count } of metadata.row_groups) {
    const options = { file: buffer, metadata, compressors, parsers, rowStart: row, rowEnd: row + Number(count) };
    const group: Record<string, unknown>[] = [];
    // Read the columns one by one: if several are damaged, the library rejects some promises that no code awaits.
    for (const { name, utf8, read } of columns) {
      const column = await from(() => parquetReadObjects({ ...options, columns: [name], utf8 }));
      // The library leaves out lists that are null.
      for (const [i, value] of column.entries())
        group[i] = Object.assign(group[i] ?? {}, { [name]: plain(value[name] ?? null, read) });
    }
    for (const value of group) yield { place: { row: ++row }, value };
  }
}

const parsers = { dateFromDays: (days: number) => new Date(days * 86_400_000).toISOString().slice(0, 10) };

interface Column {
  readonly name: string;
  /** Whether bytes that are not said to be text are. */
  readonly utf8: boolean;
  /** Reads a number of the column, or its bytes. */
  readonly read: (value: unknown) => unknown;
}

/** How to read a column. The library multiplies decimals in floating point: it has to leave them as they are. */
function columnOf({ element, children }: SchemaTree): Column {
  const leaves = children.length === 0 ? [element] : children.flatMap(leavesOf);
  const [{ scale = 0 } = element] = leaves;
  const all = (is: (leaf: SchemaElement) => boolean) => leaves.every(is);
  if (!all((leaf) => leaf.converted_type === 'DECIMAL' && (leaf.scale ?? 0) === scale)) {
    const read = all(({ type }) => type === 'FLOAT') ? shortest : (value: unknown) => value;
    return { name: element.name, utf8: true, read };
  }
  for (const leaf of leaves) Object.assign(leaf, { converted_type: undefined, logical_type: undefined });
  return { name: element.name, utf8: false, read: (value) => decimal(value, scale) };
}

const leavesOf = ({ element, children }: SchemaTree): SchemaElement[] =>
  children.length === 0 ? [element] : children.flatMap(leavesOf);

/** The number with the fewest digits that a number of 32 bits stands for: 0.1 for 0.10000000149011612. */
const shortest = (value: unknown): unknown =>
  typeof value !== 'number'
    ? value
    : ([6, 7, 8].map((digits) => Number(value.toPrecision(digits))).find((short) => Math.fround(short) === value) ??
      value);

/** A decimal from its digits as a whole number or as bytes, the first of which has the sign. */
function decimal(value: unknown, scale: number): unknown {
  if (value instanceof Uint8Array) return decimal(BigInt.asIntN(8 * value.length, BigInt(`0x${hex(value)}`)), scale);
  if (typeof value !== 'number' && typeof value !== 'bigint') return value;
  const [, sign = '', digits = ''] = /^(-?)(\d+)$/.exec(String(value)) ?? [];
  const padded = digits.padStart(scale + 1, '0');
  const [whole, fraction] = [padded.slice(0, padded.length - scale), padded.slice(padded.length - scale)];
  const text = sign + whole + (/[1-9]/.test(fraction) ? `.${fraction.replace(/0+$/, '')}` : '');
  return String(Number(text)) === text ? Number(text) : text;
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex') || '0';

function plain(value: unknown, read: Column['read']): unknown {
  if (Array.isArray(value)) return value.map((each) => plain(each, read));
  const leaf = read(value);
  if (typeof leaf === 'bigint') return Number.isSafeInteger(Number(leaf)) ? Number(leaf) : String(leaf);
  if (leaf instanceof Date) return leaf.toISOString();
  if (typeof leaf !== 'object' || leaf === null || ArrayBuffer.isView(leaf)) return leaf;
  return Object.fromEntries(Object.entries(leaf).map(([key, inner]) => [key, plain(inner, read)]));
}
