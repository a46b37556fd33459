import { CheckpointError, isObject, messageOf } from '../../errors.js';

export const bytesOf = { F32: 4, BF16: 2, F16: 2 } as const;

export type TensorDtype = keyof typeof bytesOf;

/** A tensor of a file; `start` and `end` of its bytes count from the end of the header. */
export interface TensorEntry {
  readonly name: string;
  readonly dtype: TensorDtype;
  readonly shape: readonly number[];
  readonly start: number;
  readonly end: number;
}

interface Header {
  /** The tensors in the order of their bytes. */
  readonly tensors: readonly TensorEntry[];
  readonly metadata: Readonly<Record<string, string>>;
  /** The byte after the header. */
  readonly dataStart: number;
}

/** The size of the field before the header that holds the header's length. */
export const LENGTH_BYTES = 8;
/** The longest header that the format allows. */
const LONGEST_HEADER = 100_000_000;

/**
 * Reads the length of the header in bytes from the first bytes of a file of `size` bytes.
 * @throws CheckpointError when the file is too short for it
 */
export function headerLength(first: Uint8Array, size: number, file: string): number {
  if (first.length < LENGTH_BYTES) {
    throw new CheckpointError(`${file}: expected at least 8 bytes of header length, found ${first.length}`);
  }
  const length = new DataView(first.buffer, first.byteOffset).getBigUint64(0, true);
  if (length > BigInt(size - LENGTH_BYTES)) {
    throw new CheckpointError(
      `${file}: the header is said to have ${length} bytes, but only ${size - LENGTH_BYTES} follow (truncated?)`,
    );
  }
  if (length > LONGEST_HEADER) {
    throw new CheckpointError(
      `${file}: the header is said to have ${length} bytes, expected ${LONGEST_HEADER} at most`,
    );
  }
  return Number(length);
}

/**
 * Reads and checks a whole header: every tensor has a supported dtype and the bytes that its shape needs, and the
 * tensors fill the rest of a file of `size` bytes without gap or overlap.
 * @throws CheckpointError naming the file, and the tensor that is wrong
 */
export function readHeader(header: Uint8Array, size: number, file: string): Header {
  const fields = readFields(header, file);
  const metadata = readMetadata(fields.get('__metadata__'), file);
  fields.delete('__metadata__');
  const tensors = [...fields].map(([name, value]) => readEntry(name, value, file));
  tensors.sort((a, b) => a.start - b.start || a.end - b.end);
  const dataStart = LENGTH_BYTES + header.length;
  requireContiguous(tensors, size - dataStart, file);
  return { tensors, metadata, dataStart };
}

function readFields(bytes: Uint8Array, file: string): Map<string, unknown> {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    const header: unknown = JSON.parse(text);
    if (!isObject(header)) throw new Error('it is not an object');
    const duplicate = duplicateKey(text);
    if (duplicate !== undefined) throw new Error(`the name "${duplicate}" comes twice`);
    return new Map(Object.entries(header));
  } catch (error) {
    throw new CheckpointError(`${file}: expected a JSON object as header: ${messageOf(error)}`);
  }
}

/** The first key that comes twice in the outermost object of valid JSON; `JSON.parse` silently keeps the last. */
function duplicateKey(json: string): string | undefined {
  const seen = new Set<string>();
  let depth = 0;
  for (const [token, colon] of json.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?|[{}[\]]/g)) {
    if (token === '{' || token === '[') depth++;
    else if (token === '}' || token === ']') depth--;
    else if (depth === 1 && colon !== undefined) {
      const key = String(JSON.parse(token.slice(0, -colon.length)));
      if (seen.has(key)) return key;
      seen.add(key);
    }
  }
  return undefined;
}

function readMetadata(value: unknown, file: string): Readonly<Record<string, string>> {
  if (value === undefined || value === null) return {};
  if (!isObject(value)) throw new CheckpointError(`${file}: expected an object as __metadata__`);
  const entries = Object.entries(value).map(([key, text]): [string, string] => {
    if (typeof text !== 'string') throw new CheckpointError(`${file}: __metadata__ "${key}": expected a string`);
    return [key, text];
  });
  return Object.fromEntries(entries);
}

function readEntry(name: string, value: unknown, file: string): TensorEntry {
  const refuse = (message: string) => new CheckpointError(`${file}: tensor "${name}": ${message}`);
  if (!isObject(value)) throw refuse('expected an object with dtype, shape and data_offsets');
  const { dtype, shape, data_offsets: offsets } = value;
  if (!isDtype(dtype)) {
    throw refuse(`expected one of the dtypes ${Object.keys(bytesOf).join(', ')}, found ${JSON.stringify(dtype)}`);
  }
  if (!isCounts(shape)) throw refuse(`expected a shape of whole numbers, found ${JSON.stringify(shape)}`);
  if (!isCounts(offsets) || offsets.length !== 2) {
    throw refuse(`expected two whole numbers as data_offsets, found ${JSON.stringify(offsets)}`);
  }
  const [start = 0, end = 0] = offsets;
  const expected = shape.reduce((a, b) => a * b, 1) * bytesOf[dtype];
  if (end - start !== expected) {
    throw refuse(`${dtype} [${shape.join(', ')}] needs ${expected} bytes, data_offsets give ${end - start}`);
  }
  return { name, dtype, shape, start, end };
}

function requireContiguous(tensors: readonly TensorEntry[], available: number, file: string): void {
  let at = 0;
  let previous = 'the header';
  for (const { name, start, end } of tensors) {
    if (start !== at) {
      const problem = start < at ? 'overlaps' : 'leaves a gap after';
      throw new CheckpointError(
        `${file}: tensor "${name}": its data starts at byte ${start} and ${problem} ${previous}, expected ${at}`,
      );
    }
    if (end > available) {
      throw new CheckpointError(
        `${file}: tensor "${name}": its data ends at byte ${end}, the file at ${available} (truncated?)`,
      );
    }
    at = end;
    previous = `"${name}"`;
  }
  if (at !== available) {
    throw new CheckpointError(`${file}: expected the data to end at byte ${at}, found ${available} bytes`);
  }
}

function isDtype(value: unknown): value is TensorDtype {
  return typeof value === 'string' && Object.hasOwn(bytesOf, value);
}

function isCounts(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((count) => Number.isSafeInteger(count) && count >= 0);
}

/** The bits of a file's little-endian numbers: float32 and bfloat16 unchanged, float16 as float32, which is exact. */
export function storedBits(bytes: Uint8Array, dtype: TensorDtype): Uint32Array | Uint16Array {
  if (dtype === 'F32') return view(Uint32Array, bytes);
  const words = view(Uint16Array, bytes);
  if (dtype === 'BF16') return words;
  float16 ??= Uint32Array.from({ length: 2 ** 16 }, (_, half) => float16Bits(half));
  const bits = new Uint32Array(words.length);
  for (let i = 0; i < words.length; i++) bits[i] = float16[words[i] as number] as number;
  return bits;
}

/** The float32 bits of every float16. */
let float16: Uint32Array | undefined;

/** The float32 bits of a float16 (IEEE 754: 1 sign, 5 exponent, 10 fraction bits). */
function float16Bits(half: number): number {
  const sign = (half & 0x8000) << 16;
  const exponent = (half >>> 10) & 0x1f;
  const fraction = half & 0x3ff;
  if (exponent === 0x1f) return sign | 0x7f800000 | (fraction << 13);
  if (exponent > 0) return sign | ((exponent + 127 - 15) << 23) | (fraction << 13);
  if (fraction === 0) return sign;
  // Subnormal: move the leading one to the hidden bit.
  const shift = Math.clz32(fraction) - 21;
  return sign | ((113 - shift) << 23) | (((fraction << shift) & 0x3ff) << 13);
}

/** A view of the bytes as numbers, or a copy if they do not begin at a multiple of a number's size. */
function view<T>(
  Numbers: { readonly BYTES_PER_ELEMENT: number; new (buffer: ArrayBufferLike, offset: number, length: number): T },
  bytes: Uint8Array,
): T {
  const size = Numbers.BYTES_PER_ELEMENT;
  const { buffer, byteOffset, length } = bytes.byteOffset % size === 0 ? bytes : Uint8Array.from(bytes);
  return new Numbers(buffer, byteOffset, length / size);
}
