/** A result that nobody else holds: its buffers cross to the other thread without a copy. */
export class HandedOver<T> {
  readonly value: T;

  constructor(value: T) {
    this.value = value;
  }
}

/** The buffers of all arrays of float32 in a value. */
export function buffersOf(value: unknown): ArrayBuffer[] {
  if (value instanceof Float32Array) return [value.buffer as ArrayBuffer];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(buffersOf) : [];
}
