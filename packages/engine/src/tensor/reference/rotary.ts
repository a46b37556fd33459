import type { HostKernels } from '../kernels.js';

export const rope: HostKernels['rope'] = ({
  qkv,
  table,
  positions,
  rows,
  heads: { heads, kvHeads, headDim },
  inverse,
}) => {
  const half = headDim / 2;
  const stride = (heads + 2 * kvHeads) * headDim;
  const direction = inverse ? -1 : 1;
  for (let row = 0; row < rows; row++) {
    const angles = (positions[row] as number) * headDim;
    for (let head = 0; head < heads + kvHeads; head++) {
      const at = row * stride + head * headDim;
      for (let i = 0; i < half; i++) {
        const cos = table[angles + i] as number;
        const sin = (table[angles + half + i] as number) * direction;
        const a = qkv[at + i] as number;
        const b = qkv[at + half + i] as number;
        qkv[at + i] = a * cos - b * sin;
        qkv[at + half + i] = b * cos + a * sin;
      }
    }
  }
};
