import type { HostKernels } from '@drmas/engine/kernels';
import { RandomStream } from '@drmas/engine/math';

/** The kernels under test; they exist only once the suite runs. */
export type Subject = () => HostKernels;

export const ROWS = [1, 3, 17, 130];
export const WIDTHS = [1, 5, 31, 64, 97, 172];

/** Reads a number; the suite's formulas never leave their arrays. */
export const get = (values: ArrayLike<number>, i: number): number => values[i] as number;

/**
 * A buffer of the kernels' own that holds `values` and then a tail of not-a-numbers: reading too far spoils the result,
 * writing too far shows in `tailIsIntact`.
 */
export function floats(kernels: HostKernels, values: ArrayLike<number>): Float32Array {
  const buffer = kernels.allocate(values.length + TAIL);
  buffer.set(values);
  buffer.fill(Number.NaN, values.length);
  return buffer;
}

/** Not-a-number in bfloat16. */
export const NAN_BITS = 0x7fc0;

/** A buffer of the kernels' own with a tail of not-a-numbers, as `floats` makes them. */
export function bfloat16(kernels: HostKernels, values: Uint16Array): Uint16Array {
  const buffer = kernels.allocateBfloat16(values.length + TAIL);
  buffer.set(values);
  buffer.fill(NAN_BITS, values.length);
  return buffer;
}

/** None under the address sanitizer (scripts/sanitizers.ts), which sees any touch beyond a buffer's own end. */
const TAIL = process.env.ASAN_OPTIONS === undefined ? 19 : 0;

export const tailIsIntact = (buffer: Float32Array): boolean =>
  buffer.subarray(buffer.length - TAIL).every(Number.isNaN);

export const body = (buffer: Float32Array): Float32Array => buffer.slice(0, buffer.length - TAIL);

/** Output buffers start as not-a-number, so that an element that is not written shows. */
export const blank = (kernels: HostKernels, length: number): Float32Array =>
  floats(kernels, new Float32Array(length).fill(Number.NaN));

export function integers(kernels: HostKernels, values: ArrayLike<number>): Int32Array {
  const buffer = kernels.allocateIntegers(values.length);
  buffer.set(values);
  return buffer;
}

const drawn = new Map<string, Float32Array>();

/**
 * Float32 numbers, uniform in [-spread, spread), a pure function of the arguments; drawn once for all the kernels of
 * a file.
 */
export function noise(length: number, key: string, spread = 1): Float32Array {
  const name = `${length} ${spread} ${key}`;
  const before = drawn.get(name);
  if (before !== undefined) return before.slice();
  const stream = new RandomStream('kernels', key, length);
  const numbers = new Float32Array(length);
  for (let i = 0; i < length; i++) numbers[i] = (stream.word() / 2 ** 31 - 1) * spread;
  drawn.set(name, numbers);
  return numbers.slice();
}

export function randomIntegers(length: number, below: number, key: string): Int32Array {
  const stream = new RandomStream('kernels', key, length);
  return Int32Array.from({ length }, () => stream.integer(0, below - 1));
}

export const dot = (a: ArrayLike<number>, b: ArrayLike<number>): number => {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += get(a, i) * get(b, i);
  return sum;
};

/** Selects rows of a matrix, in the order given. */
export function pickRows(x: Float32Array, rows: readonly number[], width: number): Float32Array {
  const picked = new Float32Array(rows.length * width);
  rows.forEach((row, r) => {
    picked.set(x.subarray(row * width, (row + 1) * width), r * width);
  });
  return picked;
}

/** @throws naming the worst element unless |actual − expected| <= tolerance (1 + |expected|) everywhere. */
export function close(actual: Float32Array, expected: ArrayLike<number>, tolerance: number, what: string): void {
  const values = actual.length === expected.length ? actual : body(actual);
  if (values.length !== expected.length) throw new Error(`${what}: ${values.length} of ${expected.length} elements`);
  for (let i = 0; i < values.length; i++) {
    const a = values[i] as number;
    const e = expected[i] as number;
    if (!(Math.abs(a - e) <= tolerance * (1 + Math.abs(e)))) {
      throw new Error(`${what}: element ${i} is ${a}, expected ${e} (tolerance ${tolerance})`);
    }
  }
  if (values !== actual && !tailIsIntact(actual)) throw new Error(`${what}: written beyond its end`);
}

type Numbers = Float32Array | Int32Array | Uint16Array;

const bitsOf = (values: Numbers) =>
  values instanceof Float32Array ? new Int32Array(values.buffer, values.byteOffset, values.length) : values;

/** @throws naming the first element whose bits differ. */
export function sameBits(actual: Numbers, expected: Numbers, what: string): void {
  const [a, e] = [bitsOf(actual), bitsOf(expected)];
  if (a.length !== e.length) throw new Error(`${what}: ${a.length} elements against ${e.length}`);
  for (let i = 0; i < a.length; i++) {
    if (a[i] !== e[i]) throw new Error(`${what}: element ${i} is ${actual[i]}, not the very ${expected[i]}`);
  }
}

/** The gradient of a float64 function by central differences. */
export function differences(f: (x: Float64Array) => number, x: ArrayLike<number>): Float64Array {
  const step = 1e-4;
  const moved = Float64Array.from(x);
  return Float64Array.from(x, (value, i) => {
    moved[i] = value + step;
    const above = f(moved);
    moved[i] = value - step;
    const below = f(moved);
    moved[i] = value;
    return (above - below) / (2 * step);
  });
}
