import type { Heads, WeightArray } from '../kernels.js';
import type { LinearMemory } from './memory.js';

/**
 * Checks what a kernel is called with before it touches memory, and gives addresses. `i` is the argument's position, for
 * the message; every method throws a RangeError, as the native kernels do.
 */
export class Arguments {
  readonly #memory: LinearMemory;
  #disposed = false;

  constructor(memory: LinearMemory) {
    this.#memory = memory;
  }

  /** No buffer is taken any more. */
  dispose(): void {
    this.#disposed = true;
  }

  /** A whole number that WebAssembly's 32-bit integers hold. */
  size(i: number, value: number): number {
    if (!Number.isInteger(value) || value < 0 || value > 0x7fffffff) throw wrong(i, 'expected a size');
    return value;
  }

  floats(i: number, view: Float32Array, least: number): number {
    if (!(view instanceof Float32Array)) throw wrong(i, 'expected a Float32Array');
    return this.#address(i, view, least);
  }

  /** In float32 or in bfloat16, as `like` is. */
  weights(i: number, view: WeightArray, least: number, like: WeightArray = view): number {
    const kind = like instanceof Uint16Array ? Uint16Array : Float32Array;
    if (!(view instanceof kind)) throw wrong(i, `expected a ${kind.name}`);
    return this.#address(i, view, least);
  }

  integers(i: number, view: Int32Array, least: number): number {
    if (!(view instanceof Int32Array)) throw wrong(i, 'expected an Int32Array');
    return this.#address(i, view, least);
  }

  /** All of the first `count` integers must lie in [0, limit). */
  indices(i: number, view: Int32Array, count: number, limit = 0x7fffffff): number {
    const address = this.integers(i, view, count);
    for (let k = 0; k < count; k++) {
      const value = view[k] as number;
      if (value < 0 || value >= limit) throw wrong(i, 'an index is out of range');
    }
    return address;
  }

  /** Rows of packed sequences: the last of sequences + 1 offsets that start at 0 or later and never fall. */
  rowsOf(i: number, starts: Int32Array, sequences: number): number {
    this.integers(i, starts, sequences + 1);
    let last = starts[0] as number;
    if (last < 0) throw wrong(i, 'offsets must not fall');
    for (let s = 1; s <= sequences; s++) {
      const next = starts[s] as number;
      if (next < last) throw wrong(i, 'offsets must not fall');
      last = next;
    }
    return last;
  }

  /** The three numbers of a layer's heads, as kernels take them. */
  heads(i: number, { heads, kvHeads, headDim }: Heads): readonly [heads: number, kvHeads: number, headDim: number] {
    for (const value of [heads, kvHeads, headDim]) this.size(i, value);
    if (heads < 1 || kvHeads < 1 || headDim < 1 || heads % kvHeads !== 0) {
      throw wrong(i, 'heads must be a multiple of kvHeads, all at least 1');
    }
    return [heads, kvHeads, headDim];
  }

  #address(i: number, view: WeightArray | Int32Array, least: number): number {
    if (this.#disposed) throw wrong(i, 'the kernels were disposed of');
    if (!this.#memory.holds(view)) throw wrong(i, 'the buffer was not allocated by these kernels');
    if (view.length < least) throw wrong(i, 'the buffer is too short');
    return view.byteOffset;
  }
}

const wrong = (i: number, problem: string) =>
  Object.assign(new RangeError(`argument ${i}: ${problem}`), { code: 'ERR_DRMAS_KERNELS' });

/** One more than the largest of the first `count` indices. */
export function rowsIndexed(indices: Int32Array, count: number): number {
  let most = 0;
  for (let k = 0; k < count; k++) most = Math.max(most, (indices[k] as number) + 1);
  return most;
}
