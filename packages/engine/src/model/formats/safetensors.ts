/**
 * The safetensors format: 8 bytes little-endian header length, a JSON header `{ name: { dtype, shape, data_offsets }
 * }`, then the tensors' bytes without gaps. https://huggingface.co/docs/safetensors
 */
import { ArgumentError, CheckpointError } from '../../errors.js';
import type { Files } from '../../host.js';
import type { BlockFormat } from '../../tensor/blocks.js';
import {
  bytesOf,
  headerLength,
  LENGTH_BYTES,
  readHeader,
  storedBits,
  type TensorDtype,
  type TensorEntry,
} from './safetensors-header.js';
import { type BlockPiece, type FilePiece, rowLength, type TensorPiece, type TensorShape } from './tensor.js';
import { putPiece, type TensorPlace, takeTensor } from './tensor-place.js';
import { readOrRefuse } from './validated-json.js';

/** A tensor of a file whose header has been checked; its numbers are read on demand. */
export interface StoredTensor extends TensorShape {
  readonly dtype: TensorDtype;
  /**
   * Reads the numbers in the order of the file, about `pieceBytes` at a time, each piece in a new buffer.
   * @throws CheckpointError when the file cannot be read, or has become shorter than it was
   */
  pieces(pieceBytes?: number): AsyncIterable<TensorPiece>;
  /** Where the numbers are, for an engine that reads files by itself. */
  readonly inFile?: FilePiece | undefined;
  /** The same numbers in the blocks of the file, if they are in blocks that products read. */
  readonly blocks?:
    | {
        readonly format: BlockFormat;
        /** Reads whole rows, as `pieces` does. */
        pieces(): AsyncIterable<BlockPiece>;
      }
    | undefined;
}

export interface SafetensorsFile {
  /** The tensors by name, in the order of their bytes. */
  readonly tensors: ReadonlyMap<string, StoredTensor>;
  /** The free texts of the header; empty if it has none. */
  readonly metadata: Readonly<Record<string, string>>;
}

/**
 * Encodes float32 tensors as a safetensors file, part by part: a tensor is converted when its turn comes. Equal tensors
 * and metadata give equal bytes, whatever their order.
 * @throws ArgumentError when a name comes twice or a shape does not fit its data
 */
export function encodeSafetensors(
  tensors: readonly TensorPlace[],
  metadata: Readonly<Record<string, string>> = {},
): Iterable<Uint8Array> {
  const entries: [string, unknown][] = [];
  if (Object.keys(metadata).length > 0) entries.push(['__metadata__', Object.fromEntries(sortedByKey(metadata))]);
  const sorted = [...tensors].sort((a, b) => compare(a.name, b.name));
  let end = 0;
  sorted.forEach(({ name, shape, data, stride }, i) => {
    if (name === sorted[i - 1]?.name || name === '__metadata__') {
      throw new ArgumentError(`tensor "${name}": the name is taken`);
    }
    const length = shape.reduce((a, b) => a * b, 1);
    if (stride === undefined && length !== data.length) {
      throw new ArgumentError(`tensor "${name}": shape [${shape.join(', ')}] does not fit ${data.length} values`);
    }
    const start = end;
    end += 4 * length;
    entries.push([name, { dtype: 'F32', shape, data_offsets: [start, end] }]);
  });
  return parts(entries, sorted);
}

function* parts(entries: readonly [string, unknown][], tensors: readonly TensorPlace[]): Generator<Uint8Array> {
  const json = new TextEncoder().encode(toJson(entries));
  const headerBytes = Math.ceil(json.length / 8) * 8; // so that the data is aligned
  const header = new Uint8Array(LENGTH_BYTES + headerBytes).fill(0x20, LENGTH_BYTES);
  new DataView(header.buffer).setBigUint64(0, BigInt(headerBytes), true);
  header.set(json, LENGTH_BYTES);
  yield header;
  for (const place of tensors) {
    const { data } = takeTensor(place);
    yield new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  }
}

/**
 * The default size of a piece: large enough that the cost of a read call does not matter, small compared to a model.
 */
const PIECE_BYTES = 2 ** 22;

/**
 * Opens a file: reads its whole header and checks it, also against the file's size. The tensors' numbers are read on
 * demand, so a file may be larger than memory.
 * @throws CheckpointError naming file, tensor and expectation when the file is malformed or holds an unsupported dtype
 */
export async function openSafetensors(files: Files, path: string): Promise<SafetensorsFile> {
  const read = (from: number, length: number) => readOrRefuse(path, () => files.readBytes(path, from, length));
  const size = await readOrRefuse(path, () => files.size(path));
  const length = headerLength(await read(0, LENGTH_BYTES), size, path);
  const { tensors, metadata, dataStart } = readHeader(await read(LENGTH_BYTES, length), size, path);

  async function* pieces({ name, dtype, shape, start, end }: TensorEntry, pieceBytes = PIECE_BYTES) {
    const numberBytes = bytesOf[dtype];
    const rowBytes = rowLength(shape) * numberBytes;
    const most = Math.max(1, Math.floor(pieceBytes / rowBytes)) * rowBytes;
    for (let at = start; at < end; at += most) {
      const length = Math.min(most, end - at);
      const bytes = await read(dataStart + at, length);
      if (bytes.length < length)
        throw new CheckpointError(
          `${path}: tensor "${name}": expected ${length} bytes, found ${bytes.length} (truncated?)`,
        );
      yield { name, dtype, first: (at - start) / numberBytes, bytes };
    }
  }

  const stored = tensors.map((entry): [string, StoredTensor] => {
    const { name, dtype, shape, start } = entry;
    const inFile = { name, dtype, shape, path, offset: dataStart + start };
    return [name, { name, dtype, shape, inFile, pieces: (pieceBytes) => pieces(entry, pieceBytes) }];
  });
  return { tensors: new Map(stored), metadata };
}

/** Reads all of a tensor's numbers at once, as float32. @throws CheckpointError as `pieces` does */
export async function readTensor(tensor: StoredTensor): Promise<Float32Array> {
  const data = new Float32Array(tensor.shape.reduce((a, b) => a * b, 1));
  await readInto({ ...tensor, data }, tensor);
  return data;
}

/** The same numbers under another name. */
export function renamed(tensor: StoredTensor, name: string): StoredTensor {
  async function* pieces(pieceBytes?: number) {
    for await (const piece of tensor.pieces(pieceBytes)) yield { ...piece, name };
  }
  return { ...tensor, name, inFile: tensor.inFile && { ...tensor.inFile, name }, pieces };
}

/** Whether two tensors have the same numbers in the same format. @throws CheckpointError as `pieces` does */
export async function areEqual(one: StoredTensor, other: StoredTensor): Promise<boolean> {
  if (one.dtype !== other.dtype || one.shape.join() !== other.shape.join()) return false;
  const others = other.pieces()[Symbol.asyncIterator]();
  for await (const { bytes, dtype } of one.pieces()) {
    const next = await others.next();
    const bits = storedBits(bytes, dtype);
    const otherBits = next.done === true ? bits.subarray(0, 0) : storedBits(next.value.bytes, dtype);
    if (bits.length !== otherBits.length) return false;
    for (let i = 0; i < bits.length; i++) if (bits[i] !== otherBits[i]) return false;
  }
  return true;
}

/** Reads a tensor into its place. @throws CheckpointError as `pieces` does */
export async function readInto(place: TensorPlace, tensor: StoredTensor): Promise<void> {
  for await (const piece of tensor.pieces()) putPiece(place, piece);
}

/** The tensor with this name. @throws CheckpointError when it is missing or has another shape. */
export function requireTensor<T extends { readonly shape: readonly number[] }>(
  tensors: ReadonlyMap<string, T>,
  { name, shape }: TensorShape,
  file: string,
): T {
  const tensor = tensors.get(name);
  const expected = `[${shape.join(', ')}]`;
  if (tensor === undefined) throw new CheckpointError(`${file}: tensor "${name}" ${expected} is missing`);
  const actual = `[${tensor.shape.join(', ')}]`;
  if (actual === expected) return tensor;
  throw new CheckpointError(`${file}: tensor "${name}" has shape ${actual}, expected ${expected}`);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function sortedByKey<T>(record: Readonly<Record<string, T>>): [string, T][] {
  return Object.entries(record).sort(([a], [b]) => compare(a, b));
}

/** JSON with the entries in the given order; an object would move keys that look like numbers to the front. */
function toJson(entries: readonly [string, unknown][]): string {
  return `{${entries.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join(',')}}`;
}
