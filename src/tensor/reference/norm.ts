import type { Kernels } from '../kernels.js';

export const rmsNorm: Kernels['rmsNorm'] = (out, inverse, x, gain, rows, width, epsilon) => {
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
 * With s = 1 / sqrt(mean(x²) + epsilon) and g = gain · dOut: dx = s g − x s³ mean(g x), dGain = Σ over rows of dOut x s.
 */
export const rmsNormBackward: Kernels['rmsNormBackward'] = (dx, dGain, dOut, x, gain, inverse, rows, width) => {
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

export const headNorm: Kernels['headNorm'] = (x, inverse, gain, rows, stride, heads, headDim, epsilon) => {
  for (let row = 0; row < rows; row++) {
    for (let head = 0; head < heads; head++) {
      const values = x.subarray(row * stride + head * headDim, row * stride + (head + 1) * headDim);
      rmsNorm(values, inverse.subarray(row * heads + head), values, gain, 1, headDim, epsilon);
    }
  }
};

/** The formula of `rmsNormBackward`, written over the gradient that it reads. */
export const headNormBackward: Kernels['headNormBackward'] = (
  d,
  dGain,
  x,
  gain,
  inverse,
  rows,
  stride,
  heads,
  headDim,
) => {
  const gainSums = new Float64Array(headDim);
  for (let row = 0; row < rows; row++) {
    for (let head = 0; head < heads; head++) {
      const at = row * stride + head * headDim;
      const scale = inverse[row * heads + head] as number;
      let dot = 0;
      for (let i = 0; i < headDim; i++) {
        const change = (d[at + i] as number) * (x[at + i] as number);
        dot += change * (gain[i] as number);
        gainSums[i] = (gainSums[i] as number) + change * scale;
      }
      const along = (dot / headDim) * scale * scale * scale;
      for (let i = 0; i < headDim; i++) {
        d[at + i] = (d[at + i] as number) * (gain[i] as number) * scale - (x[at + i] as number) * along;
      }
    }
  }
  for (let i = 0; i < headDim; i++) dGain[i] = (dGain[i] as number) + (gainSums[i] as number);
};
