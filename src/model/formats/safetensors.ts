/**
 * The safetensors format: 8 bytes little-endian header length, a JSON header `{ name: { dtype, shape, data_offsets } }`, then
 * the tensors' bytes without gaps. https://huggingface.co/docs/safetensors
 */
import { ArgumentError, CheckpointError } from '../../core/errors.js';
import { readHeader, type TensorDtype } from './safetensors-header.js';

/** What a tensor is called and how large it is. */
export interface TensorShape {
  readonly name: string;
  readonly shape: readonly number[];
}

/** A float32 tensor with its name, row-major. */
export interface NamedTensor extends TensorShape {
  readonly data: Float32Array;
}

/** A tensor as read: `dtype` is how the file stores it, `data` its values as float32. */
export interface StoredTensor {
  readonly dtype: TensorDtype;
  readonly shape: readonly number[];
  readonly data: Float32Array;
}

/**
 * A safetensors file of float32 tensors. Equal tensors and metadata give equal bytes, in whatever order they come.
 * @throws ArgumentError when a name comes twice or a shape does not fit its data.
 */
export function encodeSafetensors(
  tensors: readonly NamedTensor[],
  metadata: Readonly<Record<string, string>> = {},
): Uint8Array {
  const entries: [string, unknown][] = [];
  if (Object.keys(metadata).length > 0) entries.push(['__metadata__', Object.fromEntries(sortedByKey(metadata))]);
  const sorted = [...tensors].sort((a, b) => compare(a.name, b.name));
  let end = 0;
  sorted.forEach(({ name, shape, data }, i) => {
    if (name === sorted[i - 1]?.name || name === '__metadata__') {
      throw new ArgumentError(`tensor "${name}": the name is taken`);
    }
    if (shape.reduce((a, b) => a * b, 1) !== data.length) {
      throw new ArgumentError(`tensor "${name}": shape [${shape.join(', ')}] does not fit ${data.length} values`);
    }
    const start = end;
    end += data.byteLength;
    entries.push([name, { dtype: 'F32', shape, data_offsets: [start, end] }]);
  });

  const json = new TextEncoder().encode(toJson(entries));
  const headerBytes = Math.ceil(json.length / 8) * 8; // so that the data is aligned
  const bytes = new Uint8Array(8 + headerBytes + end);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(headerBytes), true);
  bytes.fill(0x20, 8, 8 + headerBytes).set(json, 8);
  let at = 8 + headerBytes;
  for (const { data } of sorted) {
    bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), at);
    at += data.byteLength;
  }
  return bytes;
}

/**
 * The tensors of a safetensors file by name, in the order of their bytes. Bfloat16 and float16 are widened, which is exact;
 * float32 data is a view of `bytes` where its alignment allows. The whole header is checked before anything is converted.
 * @param file names the file in errors.
 * @throws CheckpointError naming file, tensor and expectation when the file is malformed or holds another dtype.
 */
export function decodeSafetensors(bytes: Uint8Array, file = 'safetensors'): Map<string, StoredTensor> {
  const { tensors, dataStart } = readHeader(bytes, file);
  return new Map(
    tensors.map(({ name, dtype, shape, start, end }) => {
      const data = toFloat32(bytes.subarray(dataStart + start, dataStart + end), dtype);
      return [name, { dtype, shape, data }];
    }),
  );
}

/**
 * The free-text metadata of a safetensors file; empty when it has none.
 * @throws CheckpointError as `decodeSafetensors`.
 */
export function safetensorsMetadata(bytes: Uint8Array, file = 'safetensors'): Readonly<Record<string, string>> {
  return readHeader(bytes, file).metadata;
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
  const found = `[${tensor.shape.join(', ')}]`;
  if (found === expected) return tensor;
  throw new CheckpointError(`${file}: tensor "${name}" has shape ${found}, expected ${expected}`);
}

function toFloat32(bytes: Uint8Array, dtype: TensorDtype): Float32Array {
  if (dtype === 'F32') {
    const aligned = bytes.byteOffset % 4 === 0 ? bytes : Uint8Array.from(bytes);
    return new Float32Array(aligned.buffer, aligned.byteOffset, aligned.byteLength / 4);
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const bits = new Uint32Array(bytes.byteLength / 2);
  for (let i = 0; i < bits.length; i++) {
    const half = view.getUint16(2 * i, true);
    bits[i] = dtype === 'BF16' ? half << 16 : float16Bits(half);
  }
  return new Float32Array(bits.buffer);
}

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
