/** A part of a buffer on a device, which the host cannot index; `subarray` works as for typed arrays. */
export interface DeviceMemory<Kind extends string = string> {
  readonly kind: Kind;
  readonly buffer: object;
  /** Where it begins in the buffer, in numbers. */
  readonly offset: number;
  readonly length: number;
  subarray(begin?: number, end?: number): DeviceMemory<Kind>;
}

export type DeviceFloats = DeviceMemory<'float32'>;
export type DeviceIntegers = DeviceMemory<'int32'>;
export type DeviceBfloat16s = DeviceMemory<'bfloat16'>;
