import type { NigtStep, SgdStep } from './kernel-arguments.js';

/** What the host gets of memories in float32 (`F`), in int32 (`I`) and in bfloat16. */
export type Contents<Memories extends readonly unknown[], F, I> = {
  -readonly [At in keyof Memories]: Memories[At] extends F
    ? Float32Array
    : Memories[At] extends I
      ? Int32Array
      : Uint16Array;
};

/**
 * The part of `KernelsOn` that a host needs whose own memory is another one: it writes, reads and gives back memory,
 * and leaves to it every number that it would otherwise index. All of these take effect in order with the other
 * operations. On the processor they are plain TypeScript (host-memory.ts), with the same bits for every set of kernels.
 */
export interface MemoryKernels<F, I, H> {
  /** The same memory for integers; it begins where the arena's memories may. */
  integersIn(floats: F): I;
  /**
   * Gives back what was allocated, no view of it; operations that were called before still see it. Does nothing where
   * memory is collected.
   */
  free(memory: F | I | H): void;
  /**
   * The first from.length numbers of `to` become `from`, which is the caller's again at once. Memory in bfloat16 begins
   * at an even number of what was allocated.
   */
  write(to: F, from: Float32Array): void;
  write(to: I, from: Int32Array): void;
  write(to: H, from: Uint16Array): void;
  /**
   * Copies of the contents, each in a buffer of its own, in one wait for all operations so far.
   * @throws DeviceError when a device was lost, has too little memory or refused something before
   */
  read<const Memories extends readonly (F | I | H)[]>(memories: Memories): Promise<Contents<Memories, F, I>>;
  /** The first from.length numbers of `to` become those of `from`. */
  copy(to: F, from: F): void;
  /** All numbers of `x` become `value`. */
  fill(x: F, value: number): void;
  /** out [rows, row.length] = `row` in every row. */
  repeat(out: F, row: F, rows: number): void;
  /**
   * A block of a matrix: to[r, c] = scale · from[r, c], or added to `to` when `accumulate`, for r < rows and c <
   * columns; rows are `toStride` and `fromStride` numbers apart. What stands beside the block in `to` stays.
   */
  copyBlock(
    to: F,
    toStride: number,
    from: F,
    fromStride: number,
    rows: number,
    columns: number,
    scale: number,
    accumulate: boolean,
  ): void;

  /**
   * A packed form that is the matrix itself, where products read matrices as they lie: it follows the weights, so it is
   * never packed again, serves products in either precision, and takes no memory. Undefined elsewhere. See `pack`.
   */
  stored(weight: F | H, inputs: number, outputs: number, transpose: boolean): F | H | undefined;

  // ---- optimisers that every set of kernels computes alike ---------------------------------------------------------

  /**
   * The step of torch.optim.SGD with g = gradient · gradientScale + weightDecay · weights. With `directions`:
   * directions = momentum · directions + g, and the step goes along those, or along g + momentum · directions when
   * `nesterov`; without along g. The gradient is left as it is.
   */
  sgd(weights: F, gradient: F, directions: F | undefined, length: number, settings: SgdStep): void;
  /**
   * The step of N-PG-IGT (Fatkhullin, Barakat, Kireeva, He 2023, arXiv 2302.01734, algorithm 1), after the normalised
   * SGD of Cutkosky and Mehta 2020 (arXiv 2002.03305). d = m d + (1 - m) g with g = gradient · gradientScale, the first
   * d is g; the iterate moves by the learning rate along -d / |d|, not at all where d is 0; the weights are the iterate
   * plus m / (1 - m) times that move. There the next gradient is taken, so that d has no bias where the objective is
   * quadratic. `ahead` holds weights - iterate. The sum of |d|² has a fixed order.
   */
  nigt(weights: F, gradient: F, direction: F, ahead: F, length: number, settings: NigtStep): void;

  // ---- value head: weights [width] and then a bias -----------------------------------------------------------------

  /** values [rows] = hidden [rows, width] · weights + bias, each sum in one fixed order. */
  valueHead(values: F, hidden: F, head: F, rows: number, width: number): void;
  /**
   * dHidden [rows, width] is overwritten, dHead [width + 1] added to, row by row in order. The slopes d loss / d values
   * [rows] are the host's, where the loss is computed.
   */
  valueHeadBackward(dHidden: F, dHead: F, slopes: Float64Array, hidden: F, head: F, rows: number, width: number): void;
}
