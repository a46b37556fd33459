import type { Heads, WeightArray } from '../kernel-arguments.js';
import type { LinearMemory } from './linear-memory.js';

/**
 * Checks the arguments of a kernel before it touches memory. Every method takes the name of an argument, for its
 * message, and throws a RangeError, as the native kernels do. The methods for buffers return an address.
 */
export class Arguments {
  readonly #memory: LinearMemory;
  #disposed = false;

  constructor(memory: LinearMemory) {
    this.#memory = memory;
  }

  /** From now on every buffer is refused. */
  dispose(): void {
    this.#disposed = true;
  }

  /** A whole number that WebAssembly's 32-bit integers hold. */
  size(name: string, value: number): number {
    if (!Number.isInteger(value) || value < 0 || value > 0x7fffffff) throw wrong(name, 'expected a size');
    return value;
  }

  atMost(name: string, value: number, most: number): void {
    if (value > most) throw wrong(name, 'too large');
  }

  floats(name: string, view: Float32Array, least: number): number {
    if (!(view instanceof Float32Array)) throw wrong(name, 'expected a Float32Array');
    return this.#address(name, view, least);
  }

  bfloat16(name: string, view: Uint16Array, least: number): number {
    if (!(view instanceof Uint16Array)) throw wrong(name, 'expected a Uint16Array');
    return this.#address(name, view, least);
  }

  /** A matrix in float32 or in bfloat16, as `like` is. */
  weights(name: string, view: WeightArray, least: number, like: WeightArray = view): number {
    const kind = like instanceof Uint16Array ? Uint16Array : Float32Array;
    if (!(view instanceof kind)) throw wrong(name, `expected a ${kind.name}`);
    return this.#address(name, view, least);
  }

  integers(name: string, view: Int32Array, least: number): number {
    if (!(view instanceof Int32Array)) throw wrong(name, 'expected an Int32Array');
    return this.#address(name, view, least);
  }

  /** All of the first `count` integers must lie in [0, limit). */
  indices(name: string, view: Int32Array, count: number, limit = 0x7fffffff): number {
    const address = this.integers(name, view, count);
    for (let k = 0; k < count; k++) {
      const value = view[k] as number;
      if (value < 0 || value >= limit) throw wrong(name, 'an index is out of range');
    }
    return address;
  }

  /** count + 1 offsets, the first at least 0, which never fall. */
  offsets(name: string, view: Int32Array, count: number): number {
    const address = this.integers(name, view, count + 1);
    let last = 0;
    for (let k = 0; k <= count; k++) {
      const next = view[k] as number;
      if (next < last) throw wrong(name, 'offsets must not fall');
      last = next;
    }
    return address;
  }

  heads(name: string, { heads, kvHeads, headDim, window = 0 }: Heads): void {
    for (const value of [heads, kvHeads, headDim, window]) this.size(name, value);
    if (heads < 1 || kvHeads < 1 || headDim < 1 || heads % kvHeads !== 0) {
      throw wrong(name, 'heads must be a multiple of kvHeads, all at least 1');
    }
  }

  #address(name: string, view: WeightArray | Int32Array, least: number): number {
    if (this.#disposed) throw wrong(name, 'the kernels were disposed of');
    if (!this.#memory.holds(view)) throw wrong(name, 'the buffer was not allocated by these kernels');
    if (view.length < least) throw wrong(name, 'the buffer is too short');
    return view.byteOffset;
  }
}

const wrong = (name: string, problem: string) =>
  Object.assign(new RangeError(`${name}: ${problem}`), { code: 'ERR_DRMAS_KERNELS' });

/** One more than the largest of the first `count` indices. */
export function indexed(indices: Int32Array, count: number): number {
  let most = 0;
  for (let k = 0; k < count; k++) most = Math.max(most, (indices[k] as number) + 1);
  return most;
}

export const qkvWidth = ({ heads, kvHeads, headDim }: Heads): number => (heads + 2 * kvHeads) * headDim;
