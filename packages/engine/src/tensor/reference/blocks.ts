import {
  BLOCK,
  BLOCK_FORMATS,
  type BlockFormat,
  blockReader,
  blockWords as sizeOf,
  unpackOutputs,
  type WholeBlock,
} from '../blocks.js';
import type { HostKernels } from '../kernels.js';
import { linear, pack, packedSize } from './linear.js';

const formatOf = (format: number) => BLOCK_FORMATS[format] as BlockFormat;

export const blockWords: HostKernels['blockWords'] = ({ inputs, outputs, format }) =>
  sizeOf({ inputs, outputs, format: formatOf(format) });

type Given = Parameters<HostKernels['blockLinear']>[0];

/** The columns of a product that are computed at a time. */
const COLUMNS = 64;

/** `linear` of a matrix whose panels are unpacked one after another: weights(first, count) is [inputs, count]. */
function linearUnpacked(
  { out, x, rows, inputs, outputs, accumulate }: Omit<Given, 'blocks' | 'format'>,
  weights: (first: number, count: number) => { readonly weight: Float32Array; readonly transpose: boolean },
): void {
  for (let first = 0; first < outputs; first += COLUMNS) {
    const count = Math.min(COLUMNS, outputs - first);
    const packed = new Float32Array(packedSize({ inputs, outputs: count }));
    pack({ packed, ...weights(first, count), inputs, outputs: count });
    const some = new Float32Array(rows * count);
    const eachRow = (copy: (at: number, from: number) => void) => {
      for (let r = 0; r < rows; r++) copy(r * outputs + first, r * count);
    };
    if (accumulate) eachRow((at, to) => some.set(out.subarray(at, at + count), to));
    linear({ out: some, x, packed, rows, inputs, outputs: count, accumulate });
    eachRow((at, from) => out.set(some.subarray(from, from + count), at));
  }
}

export const blockLinear: HostKernels['blockLinear'] = ({ blocks, format, ...given }) => {
  const { inputs, outputs } = given;
  const matrix = { format: formatOf(format), words: blocks, inputs, outputs };
  linearUnpacked(given, (first, count) => ({ weight: unpackOutputs(matrix, first, count), transpose: true }));
};

const { abs, fround } = Math;

/** Magnitudes below it count as 0. */
const SMALLEST = fround(1e-30);

/** A block of a row in whole numbers from -127 to 127. */
interface RoundedBlock {
  readonly scale: number;
  readonly numbers: readonly number[]; // [BLOCK] or fewer at the end of a row
}

/** A row [inputs] in blocks. */
function rounded(row: Float32Array): RoundedBlock[] {
  const finite = row.every(Number.isFinite);
  const blockAt = (first: number): RoundedBlock => {
    const some = row.subarray(first, first + BLOCK);
    const largest = some.reduce((most, value) => Math.max(most, abs(value)), 0);
    if (!finite) return { scale: Number.NaN, numbers: Array.from(some, () => 0) };
    if (largest < SMALLEST) return { scale: 0, numbers: Array.from(some, () => 0) };
    const inverse = fround(127 / largest);
    return { scale: fround(largest / 127), numbers: Array.from(some, (value) => toEven(fround(value * inverse))) };
  };
  return Array.from({ length: Math.ceil(row.length / BLOCK) }, (_, block) => blockAt(block * BLOCK));
}

/** The nearest whole number, the even one of two. */
function toEven(value: number): number {
  const below = Math.floor(value);
  const rest = value - below;
  return rest < 0.5 || (rest === 0.5 && below % 2 === 0) ? below : below + 1;
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, value) => total + value, 0);

function dotOf(a: readonly number[], b: readonly number[]): number {
  let total = 0;
  for (let i = 0; i < a.length; i++) total += (a[i] as number) * (b[i] as number);
  return total;
}

export const int8BlockLinear: HostKernels['int8BlockLinear'] = ({ out, x, blocks, format, accumulate, ...sizes }) => {
  const { rows, inputs, outputs } = sizes;
  const read = blockReader({ format: formatOf(format), words: blocks, inputs, outputs });
  const across = Array.from({ length: Math.ceil(inputs / BLOCK) }, (_, block) => block);
  if (across.length === 0) return;
  const ofRows = Array.from({ length: rows }, (_, r) => rounded(x.subarray(r * inputs, (r + 1) * inputs)));
  for (let n = 0; n < outputs; n++) {
    const weights = across.map((block) => read(n, block));
    ofRows.forEach((row, r) => {
      const total = across.reduce((before, block) => {
        const { scale, numbers } = row[block] as RoundedBlock;
        const { scale: weightScale, offset, numbers: weight } = weights[block] as WholeBlock;
        const scaled = fround(dotOf(numbers, weight) * weightScale);
        const product = offset === undefined ? scaled : fround(scaled + fround(sum(numbers) * offset));
        return fround(before + fround(product * scale));
      }, 0);
      const at = r * outputs + n;
      out[at] = accumulate ? (out[at] as number) + total : total;
    });
  }
};

/** The numbers [inputs, outputs] of the matrix whose transpose, [outputs, inputs], is in blocks. */
export const unpackTransposed = ({
  blocks,
  format,
  inputs,
  outputs,
}: Pick<Given, 'blocks' | 'format' | 'inputs' | 'outputs'>): Float32Array =>
  unpackOutputs({ format: formatOf(format), words: blocks, inputs: outputs, outputs: inputs }, 0, inputs);

export const blockLinearTransposed: HostKernels['blockLinearTransposed'] = (all) => {
  const { blocks: _blocks, format: _format, ...given } = all;
  const { inputs, outputs } = given;
  const whole = unpackTransposed(all);
  linearUnpacked(given, (first, count) => {
    const weight = new Float32Array(inputs * count);
    for (let i = 0; i < inputs; i++)
      weight.set(whole.subarray(i * outputs + first, i * outputs + first + count), i * count);
    return { weight, transpose: false };
  });
};

export const blockEmbed: HostKernels['blockEmbed'] = ({ out, blocks, format, tokens, rows, width, vocabSize }) => {
  const matrix = { format: formatOf(format), words: blocks, inputs: width, outputs: vocabSize };
  for (let row = 0; row < rows; row++) out.set(unpackOutputs(matrix, tokens[row] as number, 1), row * width);
};
