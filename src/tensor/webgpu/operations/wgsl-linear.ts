import { DeviceError } from '../../../core/errors.js';
import type { CommandQueue } from '../command-queue.js';
import type { DeviceKernels } from '../device-kernels.js';
import type { DeviceFloats, DeviceHalves, DeviceMemory } from '../device-memory.js';
import { inParts } from '../parts.js';
import { numberShader, perNumber, ROUNDING } from '../shader.js';
import { INTO, productShader, type Tile } from './wgsl-products.js';

/** What decoding and training share: few rows at a time, and many. */
const WIDE: Tile = { rows: 64, columns: 64, inner: 16, thread: [4, 4] };
const FEW: Tile = { rows: 8, columns: 64, inner: 16, thread: [1, 4] };

export interface LinearOptions {
  /** Bytes of a binding at most. */
  readonly binding: number;
  /** Whether calls of few rows have tiles of their own; without, they take the time of 64. */
  readonly fewRows: boolean;
}

type LinearKernels = Pick<
  DeviceKernels,
  | 'packedSize'
  | 'pack'
  | 'linear'
  | 'linearWeightGradient'
  | 'packedNarrowSize'
  | 'packNarrow'
  | 'linearNarrow'
  | 'linearNarrowWeightGradient'
>;

/**
 * The packed form is the matrix as [outputs, inputs]: a binding that would be too large is cut between outputs, which
 * no sum crosses.
 */
export function linearKernels(queue: CommandQueue, { binding, fewRows }: LinearOptions): LinearKernels {
  const linear = (narrow: boolean): DeviceKernels['linear'] => {
    return (out, x, packed, rows, inputs, outputs, accumulate) => {
      if (rows === 0) return;
      const tile = fewRows && rows <= FEW.rows ? FEW : WIDE;
      const shader = productShader({ tile, overRows: false, halves: isHalves(packed), narrow });
      const into = accumulate ? INTO.addSum : INTO.replace;
      const factors = x.subarray(0, rows * inputs);
      inParts(binding, matrixOf(packed, outputs, inputs), (first, count) => {
        const matrix = packed.subarray(first * inputs, (first + count) * inputs);
        queue.run(
          shader,
          [rows, count, inputs, into, outputs, inputs, inputs],
          [out.subarray(first, rows * outputs), factors, matrix],
          [Math.ceil(count / tile.columns), Math.ceil(rows / tile.rows)],
          rows * inputs * count,
        );
      });
    };
  };

  const weightGradient = (narrow: boolean): DeviceKernels['linearWeightGradient'] => {
    const shader = productShader({ tile: WIDE, overRows: true, halves: false, narrow });
    return (dWeight, x, dOut, rows, inputs, outputs) =>
      inParts(binding, matrixOf(dWeight, inputs, outputs), (first, count) =>
        queue.run(
          shader,
          [count, outputs, rows, narrow ? INTO.beginWith : INTO.addSum, outputs, inputs, outputs],
          [
            dWeight.subarray(first * outputs, (first + count) * outputs),
            x.subarray(first, rows * inputs),
            dOut.subarray(0, rows * outputs),
          ],
          [Math.ceil(outputs / WIDE.columns), Math.ceil(count / WIDE.rows)],
          rows * count * outputs,
        ),
      );
  };

  /** Writes the rows [outputs, inputs] of the packed form, from parts of a matrix that is or is not stored so. */
  const pack = (
    packed: DeviceFloats | DeviceHalves,
    weight: DeviceFloats | DeviceHalves,
    inputs: number,
    outputs: number,
    transpose: boolean,
  ) => {
    // Of a matrix that is stored by inputs every part needs all of it.
    const whole = inputs * outputs * weight.bytesPerNumber;
    if (!transpose && whole > binding)
      throw new DeviceError('memory', `a matrix of ${whole} bytes, not transposed: this GPU binds ${binding} at once`);
    inParts(binding, matrixOf(packed, outputs, inputs), (first, count) => {
      const size = count * inputs;
      const to = packed.subarray(first * inputs, first * inputs + size);
      const from = transpose
        ? weight.subarray(first * inputs, first * inputs + size)
        : weight.subarray(first, inputs * outputs);
      const numbers = [size, inputs, transpose ? 1 : outputs, transpose ? inputs : 1];
      if (isHalves(packed)) {
        const words = Math.ceil(size / 2);
        queue.run(isHalves(weight) ? packHalves : packRounded, numbers, [to.as('uint32'), from], perNumber(words));
      } else queue.run(packFloats, numbers, [to, from], perNumber(size));
    });
  };

  return {
    packedSize: (inputs, outputs) => inputs * outputs,
    pack: (packed, weight, inputs, outputs, transpose) => {
      if (isHalves(packed) !== isHalves(weight))
        throw new RangeError('pack: the matrix and its packed form are of one kind');
      pack(packed, weight, inputs, outputs, transpose);
    },
    linear: linear(false),
    linearWeightGradient: weightGradient(false),
    packedNarrowSize: (inputs, outputs) => inputs * outputs,
    packNarrow: pack,
    linearNarrow: linear(true),
    linearNarrowWeightGradient: weightGradient(true),
  };
}

const isHalves = (memory: DeviceMemory): memory is DeviceHalves => memory.kind === 'bfloat16';
const matrixOf = ({ bytesPerNumber }: DeviceMemory, rows: number, width: number) => ({ rows, width, bytesPerNumber });

/** Where number `i` of the packed form, [outputs, inputs], lies in the matrix. */
const PLACE = 'fn place(i: u32) -> u32 { return i % p.inputs * p.input_stride + i / p.inputs * p.output_stride; }';
const NUMBERS = ['size', 'inputs', 'input_stride', 'output_stride'];

const packFloats = numberShader({
  name: 'pack floats',
  numbers: NUMBERS,
  memories: ['packed', 'matrix'],
  declare: PLACE,
  count: 'p.size',
  body: 'packed[e] = matrix[place(e)];',
});

/** A thread writes a word: two numbers, the second of which may lie behind the end of the matrix. */
const packWords = (name: string, memory: string, bits: (i: string) => string) =>
  numberShader({
    name,
    numbers: NUMBERS,
    memories: ['packed: u32', memory],
    declare: `${ROUNDING}\n${PLACE}`,
    count: '(p.size + 1u) / 2u',
    body: `let low = ${bits('2u * e')} >> 16u; var high = packed[e] & 0xffff0000u;
  if (2u * e + 1u < p.size) { high = ${bits('2u * e + 1u')}; } packed[e] = low | high;`,
  });
const packHalves = packWords('pack halves', 'matrix: bf16', (i) => `bitcast<u32>(matrix_at(place(${i})))`);
const packRounded = packWords('pack rounded', 'matrix', (i) => `rounded_bits(bitcast<u32>(matrix[place(${i})]))`);
