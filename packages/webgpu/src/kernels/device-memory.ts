import type { GpuBuffer } from './webgpu-api.js';

/** The kind of a number in device memory: float32, int32, the upper half of a float32, or a word of 32 bits. */
export type NumberKind = 'float32' | 'int32' | 'bfloat16' | 'uint32';

const BYTES = { float32: 4, int32: 4, bfloat16: 2, uint32: 4 } as const satisfies Record<NumberKind, number>;

/** A part of a buffer on the device, which the host cannot index; `subarray` works as for typed arrays. */
export class DeviceMemory<Kind extends NumberKind = NumberKind> {
  readonly kind: Kind;
  readonly buffer: GpuBuffer;
  /** Where it begins in the buffer, in numbers. */
  readonly offset: number;
  readonly length: number;
  /** For a matrix that products read as it is stored: whether that is [inputs, outputs]. Views do not know it. */
  readonly byInputs: boolean;

  constructor(kind: Kind, buffer: GpuBuffer, offset: number, length: number, byInputs = false) {
    this.byInputs = byInputs;
    this.kind = kind;
    this.buffer = buffer;
    this.offset = offset;
    this.length = length;
  }

  get bytesPerNumber(): number {
    return BYTES[this.kind];
  }

  subarray(begin = 0, end = this.length): DeviceMemory<Kind> {
    const last = Math.min(end, this.length);
    const first = Math.min(begin, last);
    return new DeviceMemory(this.kind, this.buffer, this.offset + first, last - first);
  }

  /** The same bytes as other numbers of 4 bytes. @throws RangeError if the memory begins inside a word */
  as<Other extends 'float32' | 'int32' | 'uint32'>(kind: Other): DeviceMemory<Other> {
    const perWord = 4 / this.bytesPerNumber;
    if (this.offset % perWord !== 0) throw new RangeError(`memory that begins at ${this.offset} begins within a word`);
    return new DeviceMemory(kind, this.buffer, this.offset / perWord, Math.ceil(this.length / perWord));
  }
}

export type DeviceFloats = DeviceMemory<'float32'>;
export type DeviceIntegers = DeviceMemory<'int32'>;
export type DeviceBfloat16s = DeviceMemory<'bfloat16'>;
