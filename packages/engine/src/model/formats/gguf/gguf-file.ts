/**
 * Writes GGUF files of float32 tensors (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md): a header of typed
 * pairs of key and value, the tensors' names, sizes and offsets, then their data, each aligned to 32 bytes.
 */
import type { TensorShape } from '../tensor.js';

export const MAGIC = 'GGUF';
export const VERSION = 3;
/** The alignment of tensors in bytes, unless the metadata name another. */
export const ALIGNMENT = 32;
export const TYPE = {
  uint8: 0,
  int8: 1,
  uint16: 2,
  int16: 3,
  uint32: 4,
  int32: 5,
  float32: 6,
  bool: 7,
  string: 8,
  array: 9,
  uint64: 10,
  int64: 11,
  float64: 12,
} as const;
/** The number of the tensors' format, float32. */
export const F32 = 0;

export type GgufValue =
  | { readonly type: 'uint32' | 'float32'; readonly value: number }
  | { readonly type: 'bool'; readonly value: boolean }
  | { readonly type: 'string'; readonly value: string }
  | { readonly type: 'strings'; readonly value: readonly string[] }
  | { readonly type: 'int32s'; readonly value: readonly number[] };

export type GgufMetadata = Readonly<Record<string, GgufValue>>;

/** A tensor whose numbers are read when its turn comes. */
export interface GgufTensor extends TensorShape {
  /** The number of its format, and its bytes in the file; default: float32. */
  readonly stored?: { readonly format: number; readonly bytes: number };
  read(): Promise<Float32Array | Uint8Array>;
}

/** A growing buffer of little-endian values. */
class Writer {
  #bytes = new Uint8Array(1 << 16);
  #length = 0;

  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }
  raw(data: Uint8Array): void {
    this.#room(data.length);
    this.#bytes.set(data, this.#length);
    this.#length += data.length;
  }
  uint32(value: number): void {
    this.#number(4, (view, at) => view.setUint32(at, value, true));
  }
  int32(value: number): void {
    this.#number(4, (view, at) => view.setInt32(at, value, true));
  }
  uint64(value: number): void {
    this.#number(8, (view, at) => view.setBigUint64(at, BigInt(value), true));
  }
  float32(value: number): void {
    this.#number(4, (view, at) => view.setFloat32(at, value, true));
  }
  bool(value: boolean): void {
    this.raw(Uint8Array.of(Number(value)));
  }
  string(value: string): void {
    const encoded = new TextEncoder().encode(value);
    this.uint64(encoded.length);
    this.raw(encoded);
  }
  #number(size: number, write: (view: DataView, at: number) => void): void {
    this.#room(size);
    write(new DataView(this.#bytes.buffer), this.#length);
    this.#length += size;
  }
  #room(more: number): void {
    if (this.#length + more <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(2 * this.#bytes.length, this.#length + more));
    grown.set(this.bytes);
    this.#bytes = grown;
  }
}

function writeValue(writer: Writer, { type, value }: GgufValue): void {
  switch (type) {
    case 'uint32':
    case 'float32':
      writer.uint32(TYPE[type]);
      writer[type](value);
      return;
    case 'bool':
      writer.uint32(TYPE.bool);
      writer.bool(value);
      return;
    case 'string':
      writer.uint32(TYPE.string);
      writer.string(value);
      return;
    case 'strings':
      writeList(writer, 'string', value.length);
      for (const one of value) writer.string(one);
      return;
    case 'int32s':
      writeList(writer, 'int32', value.length);
      for (const one of value) writer.int32(one);
  }
}

function writeList(writer: Writer, element: keyof typeof TYPE, length: number): void {
  writer.uint32(TYPE.array);
  writer.uint32(TYPE[element]);
  writer.uint64(length);
}

/** The bytes up to the next multiple of the alignment. */
const restOf = (bytes: number) => -bytes & (ALIGNMENT - 1);

/** Encodes a file part by part. @throws what reading a tensor throws */
export async function* encodeGguf(
  metadata: GgufMetadata,
  tensors: readonly GgufTensor[],
): AsyncGenerator<Uint8Array, void> {
  const writer = new Writer();
  writer.raw(new TextEncoder().encode(MAGIC));
  writer.uint32(VERSION);
  writer.uint64(tensors.length);
  writer.uint64(Object.keys(metadata).length);
  for (const [key, value] of Object.entries(metadata)) {
    writer.string(key);
    writeValue(writer, value);
  }
  let offset = 0;
  for (const { name, shape, stored } of tensors) {
    const { format, bytes } = stored ?? { format: F32, bytes: 4 * shape.reduce((a, b) => a * b, 1) };
    writer.string(name);
    writer.uint32(shape.length);
    for (const size of shape.toReversed()) writer.uint64(size); // the fastest-moving dimension first
    writer.uint32(format);
    writer.uint64(offset);
    offset += bytes + restOf(bytes);
  }
  writer.raw(new Uint8Array(restOf(writer.bytes.length)));
  yield writer.bytes;
  for (const tensor of tensors) {
    const { buffer, byteOffset, byteLength } = await tensor.read();
    yield new Uint8Array(buffer, byteOffset, byteLength);
    if (restOf(byteLength) > 0) yield new Uint8Array(restOf(byteLength));
  }
}
