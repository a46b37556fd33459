/** Reads the header of a GGUF file: typed pairs of key and value, then the tensors' names, shapes, formats and places.
 * */
import { CheckpointError } from '../../../errors.js';
import { excerpt, type Files } from '../../../host.js';
import { rowLength } from '../tensor.js';
import { readOrRefuse } from '../validated-json.js';
import { bytesIn, FORMATS, formatName, type GgufFormat } from './gguf-blocks.js';
import { ALIGNMENT, MAGIC, TYPE, VERSION } from './gguf-file.js';

/** A value of the metadata. Whole numbers of 64 bits are rounded to a double. */
export type GgufMetadataValue = number | boolean | string | readonly (number | boolean | string)[];

export interface GgufEntry {
  readonly name: string;
  /** The slowest dimension first, as in other formats; the file has the fastest first. */
  readonly shape: readonly number[];
  readonly format: GgufFormat;
  /** The place of its bytes in the file. */
  readonly start: number;
  readonly bytes: number;
}

export interface GgufHeader {
  readonly metadata: ReadonlyMap<string, GgufMetadataValue>;
  readonly tensors: ReadonlyMap<string, GgufEntry>;
}

/** Bytes that are read at first. A header has megabytes, most of them the vocabulary. */
const FIRST_BYTES = 2 ** 20;
/** The longest header that is read. A vocabulary of a million tokens has about 40 MB. */
const LONGEST_HEADER = 2 ** 28;
const MOST_DIMENSIONS = 4;

/**
 * Reads and checks the header, also against the file's size.
 * @throws CheckpointError naming the file and the key or tensor that is wrong or not supported
 */
export async function readGgufHeader(files: Files, file: string): Promise<GgufHeader> {
  const size = await readOrRefuse(file, () => files.size(file));
  for (let length = FIRST_BYTES; ; length *= 4) {
    const expected = Math.min(length, size, LONGEST_HEADER);
    const bytes = await readOrRefuse(file, () => files.readBytes(file, 0, expected));
    try {
      return headerIn(new Cursor(bytes, file), size, file);
    } catch (error) {
      if (!(error instanceof EndOfBytes)) throw error;
      if (bytes.length < expected)
        throw new CheckpointError(`${file}: expected ${expected} bytes, found ${bytes.length} (truncated?)`);
      if (bytes.length >= LONGEST_HEADER)
        throw new CheckpointError(`${file}: the header has more than ${LONGEST_HEADER} bytes`);
      if (bytes.length >= size) throw new CheckpointError(`${file}: the file ends within its header (truncated?)`);
    }
  }
}

/** The bytes end before the header does. */
class EndOfBytes extends Error {}

type ReadNumber = (view: DataView, at: number) => number | boolean;

/** The types of numbers, with their bytes. */
const NUMBERS = new Map<number, { readonly bytes: number; readonly read: ReadNumber }>([
  [TYPE.uint8, { bytes: 1, read: (view, at) => view.getUint8(at) }],
  [TYPE.int8, { bytes: 1, read: (view, at) => view.getInt8(at) }],
  [TYPE.uint16, { bytes: 2, read: (view, at) => view.getUint16(at, true) }],
  [TYPE.int16, { bytes: 2, read: (view, at) => view.getInt16(at, true) }],
  [TYPE.uint32, { bytes: 4, read: (view, at) => view.getUint32(at, true) }],
  [TYPE.int32, { bytes: 4, read: (view, at) => view.getInt32(at, true) }],
  [TYPE.float32, { bytes: 4, read: (view, at) => view.getFloat32(at, true) }],
  [TYPE.bool, { bytes: 1, read: (view, at) => view.getUint8(at) !== 0 }],
  [TYPE.uint64, { bytes: 8, read: (view, at) => Number(view.getBigUint64(at, true)) }],
  [TYPE.int64, { bytes: 8, read: (view, at) => Number(view.getBigInt64(at, true)) }],
  [TYPE.float64, { bytes: 8, read: (view, at) => view.getFloat64(at, true) }],
]);

/** Reads little-endian values one after another. */
class Cursor {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #file: string;
  readonly #text = new TextDecoder('utf-8', { ignoreBOM: true }); // a token may begin with one
  at = 0;

  constructor(bytes: Uint8Array, file: string) {
    this.#file = file;
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  raw(length: number): Uint8Array {
    const from = this.#skip(length);
    return this.#bytes.subarray(from, from + length);
  }
  uint32(): number {
    return this.#view.getUint32(this.#skip(4), true);
  }
  uint64(): number {
    return Number(this.#view.getBigUint64(this.#skip(8), true));
  }
  string(): string {
    return this.#text.decode(this.raw(this.uint64()));
  }
  /** A value of one of the types that are no arrays. */
  scalar(type: number, key: string): number | boolean | string {
    if (type === TYPE.string) return this.string();
    const number = NUMBERS.get(type);
    if (number !== undefined) return number.read(this.#view, this.#skip(number.bytes));
    throw new CheckpointError(`${this.#file}: "${key}" has a value of type ${type}, which GGUF does not have here`);
  }
  #skip(length: number): number {
    const from = this.at;
    // A damaged length can be larger than any file.
    if (!(from + length <= this.#bytes.length)) throw new EndOfBytes();
    this.at = from + length;
    return from;
  }
}

function headerIn(cursor: Cursor, size: number, file: string): GgufHeader {
  if (new TextDecoder().decode(cursor.raw(MAGIC.length)) !== MAGIC)
    throw new CheckpointError(`${file}: expected a GGUF file, which begins with "${MAGIC}"`);
  const version = cursor.uint32();
  if (version === VERSION << 24) throw new CheckpointError(`${file}: big-endian GGUF files are not read`);
  if (version !== 2 && version !== VERSION)
    throw new CheckpointError(`${file}: version ${version} of GGUF is not read, expected 2 or ${VERSION}`);
  const tensorCount = cursor.uint64();
  const pairs = cursor.uint64();
  const metadata = new Map<string, GgufMetadataValue>();
  for (let i = 0; i < pairs; i++) {
    const key = cursor.string();
    if (metadata.has(key)) throw new CheckpointError(`${file}: the key "${excerpt(key)}" comes twice`);
    metadata.set(key, readValue(cursor, excerpt(key)));
  }
  const parts = metadata.get('split.count');
  if (typeof parts === 'number' && parts > 1)
    throw new CheckpointError(
      `${file}: the model is split into ${parts} files, which are not read; llama.cpp's llama-gguf-split --merge joins them`,
    );
  const alignment = metadata.get('general.alignment') ?? ALIGNMENT;
  if (typeof alignment !== 'number' || !Number.isInteger(alignment) || alignment < 1)
    throw new CheckpointError(`${file}: general.alignment: expected a whole number from 1 on, found ${alignment}`);
  const places = Array.from(upTo(tensorCount), () => placeOf(cursor, file));
  const dataStart = Math.ceil(cursor.at / alignment) * alignment;
  const tensors = new Map<string, GgufEntry>();
  for (const { offset, ...tensor } of places) {
    if (tensors.has(tensor.name)) throw new CheckpointError(`${file}: tensor "${excerpt(tensor.name)}" comes twice`);
    const start = dataStart + offset;
    if (!(start + tensor.bytes <= size))
      throw new CheckpointError(
        `${file}: tensor "${excerpt(tensor.name)}": its data ends at byte ${start + tensor.bytes}, the file at ${size} (truncated?)`,
      );
    tensors.set(tensor.name, { ...tensor, start });
  }
  return { metadata, tensors };
}

function readValue(cursor: Cursor, key: string): GgufMetadataValue {
  const type = cursor.uint32();
  if (type !== TYPE.array) return cursor.scalar(type, key);
  const element = cursor.uint32();
  return Array.from(upTo(cursor.uint64()), () => cursor.scalar(element, key));
}

/** Counts lazily: a damaged count must not allocate a list before the bytes end. */
function* upTo(count: number): Generator<number> {
  for (let i = 0; i < count; i++) yield i;
}

function placeOf(cursor: Cursor, file: string): Omit<GgufEntry, 'start'> & { readonly offset: number } {
  const name = cursor.string();
  const refuse = (why: string) => new CheckpointError(`${file}: tensor "${excerpt(name)}": ${why}`);
  const dimensions = cursor.uint32();
  if (dimensions > MOST_DIMENSIONS)
    throw refuse(`it is said to have ${dimensions} dimensions, expected ${MOST_DIMENSIONS} at most`);
  const shape = Array.from({ length: dimensions }, () => cursor.uint64()).reverse();
  const type = cursor.uint32();
  const offset = cursor.uint64();
  const numbers = shape.reduce((a, b) => a * b, 1);
  if (shape.some((length) => length < 1) || !Number.isSafeInteger(numbers))
    throw refuse(`expected a shape of sizes from 1 on, found [${shape.join(', ')}]`);
  const format = FORMATS.get(type);
  if (format === undefined)
    throw refuse(
      `its numbers are in the format ${formatName(type)}, which is not read; expected one of ${[...FORMATS.values()].map(({ name }) => name).join(', ')}`,
    );
  const row = rowLength(shape);
  if (row % format.numbers !== 0)
    throw refuse(`rows of ${row} numbers are no whole blocks of ${format.name} (${format.numbers} numbers)`);
  return { name, shape, format, offset, bytes: bytesIn(format, shape) };
}
