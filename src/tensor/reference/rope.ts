import type { Kernels } from '../kernels.js';

export const rope: Kernels['rope'] = (x, table, positions, rows, stride, heads, headDim, inverse) => {
  const half = headDim / 2;
  const direction = inverse ? -1 : 1;
  for (let row = 0; row < rows; row++) {
    const angles = (positions[row] as number) * headDim;
    for (let head = 0; head < heads; head++) {
      const at = row * stride + head * headDim;
      for (let i = 0; i < half; i++) {
        const cos = table[angles + i] as number;
        const sin = (table[angles + half + i] as number) * direction;
        const a = x[at + i] as number;
        const b = x[at + half + i] as number;
        x[at + i] = a * cos - b * sin;
        x[at + half + i] = b * cos + a * sin;
      }
    }
  }
};
