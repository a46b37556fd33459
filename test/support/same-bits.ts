import { expect } from 'vitest';

/**
 * Expects equal arrays of floats, bit for bit but for the sign of zero; `toEqual` on thousands of numbers takes
 * seconds.
 */
export function expectSameBits(actual: Float32Array | undefined, expected: Float32Array | undefined): void {
  expect(actual?.length).toBe(expected?.length);
  const at = actual?.findIndex((value, i) => !Object.is(value + 0, (expected?.[i] as number) + 0)) ?? -1;
  expect({ at, value: actual?.[at] }).toEqual({ at: -1, value: undefined });
}
