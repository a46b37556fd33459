import type { CommandQueue } from '../command-queue.js';
import type { DeviceKernels } from '../device-kernels.js';
import { DeviceMemory } from '../device-memory.js';
import { inParts, rowsOfPart } from '../parts.js';
import type { ScratchMemory } from '../scratch-memory.js';
import type { WorkgroupCounts } from '../shader.js';
import { isInBfloat16, matrixOf, packMatrix } from './wgsl-pack.js';
import { INTO, productShader, type Tile } from './wgsl-products.js';

/** Training has many rows at a time, decoding few; a tile takes time for all of its rows, there or not. */
export const WIDE: Tile = { rows: 64, columns: 64, inner: 32, thread: [8, 4], ahead: 4 };
const SMALLER: readonly Tile[] = [
  { rows: 8, columns: 32, inner: 64, thread: [1, 4], ahead: 8 },
  { rows: 32, columns: 32, inner: 64, thread: [2, 4], ahead: 8 },
];

export interface LinearOptions {
  /** Bytes of a binding at most. */
  readonly binding: number;
  /** Whether calls of few rows have tiles of their own; without, they take the time of 64 rows. */
  readonly fewRows: boolean;
  readonly add: DeviceKernels['add'];
}

type LinearKernels = Pick<
  DeviceKernels,
  | 'packedSize'
  | 'pack'
  | 'stored'
  | 'linear'
  | 'linearWeightGradient'
  | 'bfloat16PackedSize'
  | 'bfloat16Pack'
  | 'bfloat16Linear'
  | 'bfloat16LinearWeightGradient'
>;

export const groupsOf = (tile: Tile, rows: number, columns: number): WorkgroupCounts => [
  Math.ceil(columns / tile.columns),
  Math.ceil(rows / tile.rows),
];

export const tileOf = (rows: number, fewRows: boolean): Tile =>
  (fewRows && SMALLER.find((each) => rows <= each.rows)) || WIDE;

/**
 * Products read a matrix as [outputs, inputs], which is the form of packed matrices and of checkpoints: a binding that
 * would be too large is cut between outputs, which no sum crosses. Or they read it as [inputs, outputs]: then it is cut
 * between inputs, and the sums of each part continue from the sums of the part before.
 */
export function linearKernels(
  queue: CommandQueue,
  scratchMemory: ScratchMemory,
  { binding, fewRows, add }: LinearOptions,
): LinearKernels {
  const linear = (inBfloat16: boolean): DeviceKernels['linear'] => {
    return ({ out, x, packed: matrix, rows, inputs, outputs, accumulate }) => {
      if (rows === 0) return;
      const tile = tileOf(rows, fewRows);
      const { byInputs } = matrix;
      const shader = productShader({
        tile,
        aByK: false,
        bByK: byInputs,
        bInBfloat16: isInBfloat16(matrix),
        inBfloat16,
      });
      if (byInputs) {
        const stored = matrixOf(matrix, inputs, outputs);
        const apart = accumulate && rowsOfPart(binding, stored) < inputs;
        const sums = (apart ? scratchMemory.take('sums of parts', rows * outputs) : out).subarray(0, rows * outputs);
        let into: number = accumulate && !apart ? INTO.addSum : INTO.replace;
        inParts(binding, stored, (first, count) => {
          const part = matrix.subarray(first * outputs, (first + count) * outputs);
          const numbers = [rows, outputs, count, into, outputs, inputs, outputs, 1];
          const memories = [sums, x.subarray(first, rows * inputs), part];
          queue.run(shader, numbers, memories, groupsOf(tile, rows, outputs), rows * count * outputs);
          into = INTO.beginWith;
        });
        if (apart) add({ out, x: sums, length: rows * outputs });
      } else
        inParts(binding, matrixOf(matrix, outputs, inputs), (first, count) => {
          const part = matrix.subarray(first * inputs, (first + count) * inputs);
          const numbers = [rows, count, inputs, accumulate ? INTO.addSum : INTO.replace, outputs, inputs, inputs, 1];
          const memories = [out.subarray(first, rows * outputs), x.subarray(0, rows * inputs), part];
          queue.run(shader, numbers, memories, groupsOf(tile, rows, count), rows * inputs * count);
        });
    };
  };

  const weightGradient = (inBfloat16: boolean): DeviceKernels['linearWeightGradient'] => {
    const shader = productShader({ tile: WIDE, aByK: true, bByK: true, bInBfloat16: false, inBfloat16 });
    return ({ dWeight, x, dOut, rows, inputs, outputs }) => {
      if (rows === 0) return;
      inParts(binding, matrixOf(dWeight, inputs, outputs), (first, count) => {
        const part = dWeight.subarray(first * outputs, (first + count) * outputs);
        const memories = [part, x.subarray(first, rows * inputs), dOut.subarray(0, rows * outputs)];
        const numbers = [count, outputs, rows, inBfloat16 ? INTO.beginWith : INTO.addSum, outputs, inputs, outputs, 1];
        queue.run(shader, numbers, memories, groupsOf(WIDE, count, outputs), rows * count * outputs);
      });
    };
  };

  return {
    packedSize: ({ inputs, outputs }) => inputs * outputs,
    pack: ({ packed, weight, inputs, outputs, transpose }) => {
      if (isInBfloat16(packed) !== isInBfloat16(weight))
        throw new RangeError('pack: the matrix and its packed form are of one kind');
      packMatrix(queue, binding, { packed, weight, inputs, outputs, transpose });
    },
    stored: ({ weight, inputs, outputs, transpose }) => {
      const { kind, buffer, offset } = weight;
      return new DeviceMemory(kind, buffer, offset, inputs * outputs, !transpose) as typeof weight;
    },
    linear: linear(false),
    linearWeightGradient: weightGradient(false),
    bfloat16PackedSize: ({ inputs, outputs }) => inputs * outputs,
    bfloat16Pack: (given) => packMatrix(queue, binding, given),
    bfloat16Linear: linear(true),
    bfloat16LinearWeightGradient: weightGradient(true),
  };
}
