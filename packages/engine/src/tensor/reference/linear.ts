import { isBfloat16, widen } from '../bfloat16.js';
import type { HostKernels } from '../kernels.js';

/**
 * Packed form: panels of four columns, [ceil(outputs / 4), inputs, 4], the last panel filled up with zeros. One pass
 * over a panel yields four sums, which keeps the processor busy although each sum has one fixed order.
 */
const PANEL = 4;

export const packedSize: HostKernels['packedSize'] = ({ inputs, outputs }) =>
  Math.ceil(outputs / PANEL) * PANEL * inputs;

export const pack: HostKernels['pack'] = ({ packed, weight, inputs, outputs, transpose }) => {
  if (isBfloat16(packed) !== isBfloat16(weight))
    throw new RangeError('pack: one matrix is in bfloat16, the other is not');
  const alongInput = transpose ? 1 : outputs;
  const alongOutput = transpose ? inputs : 1;
  let to = 0;
  for (let panel = 0; panel < outputs; panel += PANEL) {
    for (let i = 0; i < inputs; i++) {
      for (let o = panel; o < panel + PANEL; o++) {
        packed[to++] = o < outputs ? (weight[i * alongInput + o * alongOutput] as number) : 0;
      }
    }
  }
};

/** Sums of one row and one panel: sums[0..3]. */
function oneRow(sums: Float64Array, x: Float32Array, at: number, panel: Float32Array, inputs: number) {
  let s0 = 0;
  let s1 = 0;
  let s2 = 0;
  let s3 = 0;
  for (let i = 0, p = 0; i < inputs; i++, p += PANEL) {
    const a = x[at + i] as number;
    s0 += a * (panel[p] as number);
    s1 += a * (panel[p + 1] as number);
    s2 += a * (panel[p + 2] as number);
    s3 += a * (panel[p + 3] as number);
  }
  sums[0] = s0;
  sums[1] = s1;
  sums[2] = s2;
  sums[3] = s3;
}

export const linear: HostKernels['linear'] = ({ out, x, packed, rows, inputs, outputs, accumulate }) => {
  const sums = new Float64Array(PANEL);
  const widened = new Float32Array(isBfloat16(packed) ? PANEL * inputs : 0);
  for (let column = 0; column < outputs; column += PANEL) {
    const width = Math.min(PANEL, outputs - column);
    const panel = packed.subarray(column * inputs, (column + PANEL) * inputs);
    if (isBfloat16(panel)) widen(widened, panel);
    const weights = isBfloat16(panel) ? widened : panel;
    for (let row = 0; row < rows; row++) {
      oneRow(sums, x, row * inputs, weights, inputs);
      const at = row * outputs + column;
      for (let o = 0; o < width; o++) {
        const sum = Math.fround(sums[o] as number);
        out[at + o] = accumulate ? (out[at + o] as number) + sum : sum;
      }
    }
  }
};

/**
 * xᵀ dOut is a linear layer whose rows are the columns of x; the sum over rows then has the fixed order of `linear`.
 */
export const linearWeightGradient: HostKernels['linearWeightGradient'] = ({
  dWeight,
  x,
  dOut,
  rows,
  inputs,
  outputs,
}) => {
  const transposed = new Float32Array(inputs * rows);
  for (let r = 0; r < rows; r++) {
    for (let i = 0; i < inputs; i++) transposed[i * rows + r] = x[r * inputs + i] as number;
  }
  const packed = new Float32Array(packedSize({ inputs: rows, outputs }));
  pack({ packed, weight: dOut, inputs: rows, outputs, transpose: false });
  linear({ out: dWeight, x: transposed, packed, rows: inputs, inputs: rows, outputs, accumulate: true });
};
