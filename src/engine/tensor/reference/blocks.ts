import { BLOCK_FORMATS, type BlockFormat, type BlockMatrix, blockWords as sizeOf, unpackOutputs } from '../blocks.js';
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

export const blockLinearTransposed: HostKernels['blockLinearTransposed'] = ({ blocks, format, ...given }) => {
  const { inputs, outputs } = given;
  const matrix: BlockMatrix<Int32Array> = {
    format: formatOf(format),
    words: blocks,
    inputs: outputs,
    outputs: inputs,
  };
  const whole = unpackOutputs(matrix, 0, inputs); // [inputs, outputs]
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
