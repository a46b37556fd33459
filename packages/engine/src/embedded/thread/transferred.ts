/** A result whose buffers are transferred to the other thread without a copy, since the engine keeps no reference. */
export class Transferred<T> {
  readonly value: T;

  constructor(value: T) {
    this.value = value;
  }
}

export function buffersOf(value: unknown): ArrayBuffer[] {
  if (value instanceof Float32Array) return [value.buffer as ArrayBuffer];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(buffersOf) : [];
}
