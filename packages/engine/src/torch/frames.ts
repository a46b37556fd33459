/**
 * Frames over a pipe, in both directions: the four bytes `drms`, u32 bytes of the header, u32 bytes of the arrays, the
 * header as JSON, the arrays. The header's list `arrays` has their names, number types and lengths; each array is
 * padded to 8 bytes. Little-endian. python/drmas_torch/frames.py is the other side.
 */
import type { Writable } from 'node:stream';
import { z } from 'zod';
import { BackendError } from '../errors.js';

const MAGIC = Buffer.from('drms');
const HEAD_BYTES = 12;
/** A larger header is no frame of ours. */
const MOST_HEADER_BYTES = 2 ** 28;

const TYPES = { f32: Float32Array, i32: Int32Array, u8: Uint8Array, u16: Uint16Array, f64: Float64Array } as const;
type Dtype = keyof typeof TYPES;

export type NumberArray = Float32Array | Int32Array | Uint8Array | Uint16Array | Float64Array;
export type Arrays = Readonly<Record<string, NumberArray>>;
export type FrameHeader = Readonly<Record<string, unknown>> & { readonly type: string };

export interface Frame {
  readonly header: FrameHeader;
  readonly arrays: Arrays;
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
  head.writeUInt32LE(
    entries.reduce((sum, [, { byteLength }]) => sum + padded(byteLength), 0),
    8,
  );
  stream.cork();
  stream.write(head);
  stream.write(text);
  for (const [, { buffer, byteOffset, byteLength }] of entries) {
    stream.write(new Uint8Array(buffer, byteOffset, byteLength));
    const rest = padded(byteLength) - byteLength;
    if (rest > 0) stream.write(Buffer.alloc(rest));
  }
  stream.uncork();
}

export class FrameReader {
  readonly #parts: Buffer[] = [];
  #size = 0;
  #needed = HEAD_BYTES;

  /** The frames that end in this chunk. @throws BackendError when the bytes are no frames */
  take(chunk: Buffer): Frame[] {
    this.#parts.push(chunk);
    this.#size += chunk.length;
    if (this.#size < this.#needed) return [];
    let all = this.#parts.length === 1 ? chunk : Buffer.concat(this.#parts);
    const frames: Frame[] = [];
    for (;;) {
      this.#needed = frameBytes(all);
      if (all.length < this.#needed || this.#needed === HEAD_BYTES) break;
      frames.push(frameOf(all.subarray(0, this.#needed)));
      all = all.subarray(this.#needed);
    }
    this.#parts.splice(0, this.#parts.length, ...(all.length > 0 ? [all] : []));
    this.#size = all.length;
    return frames;
  }
}

/** The bytes of the frame that begins here; those of its head if that is not complete. */
function frameBytes(bytes: Buffer): number {
  if (bytes.length < HEAD_BYTES) return HEAD_BYTES;
  const header = bytes.readUInt32LE(4);
  if (!bytes.subarray(0, 4).equals(MAGIC) || header > MOST_HEADER_BYTES)
    throw new BackendError('the engine on PyTorch wrote something that is no message of it');
  return HEAD_BYTES + header + bytes.readUInt32LE(8);
}

function frameOf(bytes: Buffer): Frame {
  const end = HEAD_BYTES + bytes.readUInt32LE(4);
  const { arrays: listed, ...header } = headerOf(bytes.subarray(HEAD_BYTES, end));
  const payload = new Uint8Array(bytes.subarray(end)).buffer; // a copy that is aligned
  const arrays: Record<string, NumberArray> = {};
  let at = 0;
  for (const { name, dtype, length } of listed) {
    const bytesOf = length * TYPES[dtype].BYTES_PER_ELEMENT;
    if (at + bytesOf > payload.byteLength) throw new BackendError(`the array ${name} is longer than its message`);
    arrays[name] = new TYPES[dtype](payload, at, length);
    at += padded(bytesOf);
  }
  return { header: header as FrameHeader, arrays };
}

function headerOf(text: Buffer): z.output<typeof headerSchema> {
  try {
    return headerSchema.parse(JSON.parse(text.toString()));
  } catch {
    throw new BackendError('the engine on PyTorch wrote a message with a malformed header');
  }
}
