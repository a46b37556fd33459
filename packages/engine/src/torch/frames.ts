/**
 * Frames over a pipe, in both directions: the four bytes `drms`, u32 bytes of the header, u64 bytes of the arrays, the
 * header as JSON, the arrays. The header's list `arrays` has their names, number types and lengths; each array is
 * padded to 8 bytes. Little-endian. python/drmas_torch/frames.py is the other side.
 */
import type { Writable } from 'node:stream';
import { z } from 'zod';
import { BackendError } from '../errors.js';

const MAGIC = Buffer.from('drms');
const HEAD_BYTES = 16;
/** A larger header is no frame of ours. */
const MOST_HEADER_BYTES = 2 ** 28;
/** Bytes that are written or read as one: views of bytes and buffers of Node end at 4 GiB, arrays of numbers do not. */
const PIECE_BYTES = 2 ** 28;

const TYPES = { f32: Float32Array, i32: Int32Array, u8: Uint8Array, u16: Uint16Array, f64: Float64Array } as const;
type Dtype = keyof typeof TYPES;

export type NumberArray = Float32Array | Int32Array | Uint8Array | Uint16Array | Float64Array;
export type Arrays = Readonly<Record<string, NumberArray>>;
export type FrameHeader = Readonly<Record<string, unknown>> & { readonly type: string };

export interface Frame {
  readonly header: FrameHeader;
  readonly arrays: Arrays;
  /** Why an array is missing: this process cannot hold it. */
  readonly missing?: string;
}

const headerSchema = z.looseObject({
  type: z.string(),
  arrays: z.array(
    z.strictObject({
      name: z.string(),
      dtype: z.enum(Object.keys(TYPES) as [Dtype, ...Dtype[]]),
      length: z.int().nonnegative(),
    }),
  ),
});

const padded = (bytes: number) => Math.ceil(bytes / 8) * 8;

function dtypeOf(array: NumberArray): Dtype {
  const found = Object.entries(TYPES).find(([, type]) => array instanceof type);
  if (found === undefined) throw new TypeError('a frame carries no arrays of this type');
  return found[0] as Dtype;
}

/** Writes a frame. The arrays must stay as they are until the stream has taken them. */
export function writeFrame(stream: Writable, header: FrameHeader, arrays: Arrays = {}): void {
  const entries = Object.entries(arrays);
  const listed = entries.map(([name, array]) => ({ name, dtype: dtypeOf(array), length: array.length }));
  const text = Buffer.from(JSON.stringify({ ...header, arrays: listed }));
  const head = Buffer.alloc(HEAD_BYTES);
  MAGIC.copy(head);
  head.writeUInt32LE(text.length, 4);
  head.writeBigUInt64LE(BigInt(entries.reduce((sum, [, { byteLength }]) => sum + padded(byteLength), 0)), 8);
  stream.cork();
  stream.write(head);
  stream.write(text);
  for (const [, array] of entries) {
    for (const piece of piecesOf(array)) stream.write(piece);
    const rest = padded(array.byteLength) - array.byteLength;
    if (rest > 0) stream.write(Buffer.alloc(rest));
  }
  stream.uncork();
}

function* piecesOf({ buffer, byteOffset, byteLength }: NumberArray): Generator<Uint8Array> {
  for (let at = 0; at < byteLength; at += PIECE_BYTES)
    yield new Uint8Array(buffer, byteOffset + at, Math.min(PIECE_BYTES, byteLength - at));
}

/** Memory that the next bytes fill, or a number of bytes that nobody needs. */
type Wanted = Uint8Array | number;

export class FrameReader {
  readonly #frames: Frame[] = [];
  readonly #reading = this.#read();
  #wanted: Wanted = this.#reading.next().value;
  /** How many bytes of what is wanted have come. */
  #come = 0;

  /** The frames that end in this chunk. @throws BackendError when the bytes are no frames */
  take(chunk: Uint8Array): Frame[] {
    for (let at = 0; at < chunk.length; ) {
      const wanted = this.#wanted;
      const count = Math.min(lengthOf(wanted) - this.#come, chunk.length - at);
      if (typeof wanted !== 'number') wanted.set(chunk.subarray(at, at + count), this.#come);
      at += count;
      this.#come += count;
      while (this.#come === lengthOf(this.#wanted)) {
        this.#come = 0;
        this.#wanted = this.#reading.next().value;
      }
    }
    return this.#frames.splice(0);
  }

  *#read(): Generator<Wanted, never> {
    for (;;) {
      const head = Buffer.alloc(HEAD_BYTES);
      yield head;
      if (!head.subarray(0, 4).equals(MAGIC) || head.readUInt32LE(4) > MOST_HEADER_BYTES)
        throw new BackendError('the engine on PyTorch wrote something that is no message of it');
      const text = Buffer.allocUnsafe(head.readUInt32LE(4));
      yield text;
      const { arrays: listed, ...header } = headerOf(text);
      const sizes = listed.map(({ dtype, length }) => length * TYPES[dtype].BYTES_PER_ELEMENT);
      if (BigInt(sizes.reduce((sum, bytes) => sum + padded(bytes), 0)) !== head.readBigUInt64LE(8))
        throw new BackendError('the engine on PyTorch wrote a message whose arrays have other lengths than it says');
      const arrays: Record<string, NumberArray> = {};
      let missing: string | undefined;
      for (const [i, { name, dtype, length }] of listed.entries()) {
        const bytes = sizes[i] as number;
        const array = allocated(dtype, length);
        if (array === undefined) {
          missing ??= `the array ${name} has ${(bytes / 1e9).toFixed(1)} GB, more than this process can hold`;
          yield bytes;
        } else {
          arrays[name] = array;
          yield* piecesOf(array);
        }
        yield padded(bytes) - bytes;
      }
      this.#frames.push({ header: header as FrameHeader, arrays, ...(missing !== undefined && { missing }) });
    }
  }
}

const lengthOf = (wanted: Wanted) => (typeof wanted === 'number' ? wanted : wanted.length);

/** Undefined: there is no memory for it, or no array of this length. */
function allocated(dtype: Dtype, length: number): NumberArray | undefined {
  try {
    return new TYPES[dtype](length);
  } catch {
    return undefined;
  }
}

function headerOf(text: Buffer): z.output<typeof headerSchema> {
  try {
    return headerSchema.parse(JSON.parse(text.toString()));
  } catch {
    throw new BackendError('the engine on PyTorch wrote a message with a malformed header');
  }
}
