import type { Heads } from '../kernel-arguments.js';
import type { HostKernels } from '../kernels.js';

export const rmsNorm: HostKernels['rmsNorm'] = ({ out, inverse, x, gain, rows, width, epsilon }) => {
  for (let row = 0; row < rows; row++) {
    const at = row * width;
    let squares = 0;
    for (let i = at; i < at + width; i++) squares += (x[i] as number) * (x[i] as number);
    const scale = Math.fround(1 / Math.sqrt(squares / width + epsilon));
    inverse[row] = scale;
    for (let i = 0; i < width; i++) out[at + i] = (x[at + i] as number) * scale * (gain[i] as number);
  }
};

/**
 * With s = 1 / sqrt(mean(x²) + epsilon) and g = gain · dOut: dx = s g − x s³ mean(g x), dGain = Σ over rows of dOut x
 * s.
 */
export const rmsNormBackward: HostKernels['rmsNormBackward'] = ({ dx, dGain, dOut, x, gain, inverse, rows, width }) => {
  const gainSums = new Float64Array(width);
  for (let row = 0; row < rows; row++) {
    const at = row * width;
    const scale = inverse[row] as number;
    let dot = 0;
    for (let i = 0; i < width; i++) {
      const change = (dOut[at + i] as number) * (x[at + i] as number);
      dot += change * (gain[i] as number);
      gainSums[i] = (gainSums[i] as number) + change * scale;
    }
    const along = (dot / width) * scale * scale * scale;
    for (let i = 0; i < width; i++) {
      const direct = (dOut[at + i] as number) * (gain[i] as number) * scale;
      dx[at + i] = (dx[at + i] as number) + (direct - (x[at + i] as number) * along);
    }
  }
  for (let i = 0; i < width; i++) dGain[i] = (dGain[i] as number) + (gainSums[i] as number);
};

/** The queries and the keys in rows of qkv: their number per row, and their first position in the row. */
const lanesOf = ({ heads, kvHeads, headDim }: Heads) =>
  [
    { count: heads, first: 0 },
    { count: kvHeads, first: heads * headDim },
  ] as const;

const strideOf = ({ heads, kvHeads, headDim }: Heads) => (heads + 2 * kvHeads) * headDim;

export const headNorm: HostKernels['headNorm'] = ({
  qkv,
  queryInverse,
  keyInverse,
  queryGain,
  keyGain,
  rows,
  heads,
  epsilon,
}) => {
  const { headDim } = heads;
  const [queries, keys] = lanesOf(heads);
  for (const [{ count, first }, inverse, gain] of [
    [queries, queryInverse, queryGain],
    [keys, keyInverse, keyGain],
  ] as const) {
    for (let row = 0; row < rows; row++) {
      for (let head = 0; head < count; head++) {
        const at = row * strideOf(heads) + first + head * headDim;
        const values = qkv.subarray(at, at + headDim);
        const ofHead = { inverse: inverse.subarray(row * count + head), gain, rows: 1, width: headDim, epsilon };
        rmsNorm({ out: values, x: values, ...ofHead });
      }
    }
  }
};

/** The formula of `rmsNormBackward`, written over the gradient that it reads. */
export const headNormBackward: HostKernels['headNormBackward'] = ({
  dQkv,
  dQueryGain,
  dKeyGain,
  qkv,
  queryGain,
  keyGain,
  queryInverse,
  keyInverse,
  rows,
  heads,
}) => {
  const { headDim } = heads;
  const [queries, keys] = lanesOf(heads);
  for (const [{ count, first }, dGain, gain, inverse] of [
    [queries, dQueryGain, queryGain, queryInverse],
    [keys, dKeyGain, keyGain, keyInverse],
  ] as const) {
    const gainSums = new Float64Array(headDim);
    for (let row = 0; row < rows; row++) {
      for (let head = 0; head < count; head++) {
        const at = row * strideOf(heads) + first + head * headDim;
        const scale = inverse[row * count + head] as number;
        let dot = 0;
        for (let i = 0; i < headDim; i++) {
          const change = (dQkv[at + i] as number) * (qkv[at + i] as number);
          dot += change * (gain[i] as number);
          gainSums[i] = (gainSums[i] as number) + change * scale;
        }
        const along = (dot / headDim) * scale * scale * scale;
        for (let i = 0; i < headDim; i++) {
          const direct = (dQkv[at + i] as number) * (gain[i] as number) * scale;
          dQkv[at + i] = direct - (qkv[at + i] as number) * along;
        }
      }
    }
    for (let i = 0; i < headDim; i++) dGain[i] = (dGain[i] as number) + (gainSums[i] as number);
  }
};
