import type { Kernels } from '../kernels.js';

export const embed: Kernels['embed'] = (out, table, tokens, rows, width) => {
  for (let row = 0; row < rows; row++) {
    const from = (tokens[row] as number) * width;
    for (let i = 0; i < width; i++) out[row * width + i] = table[from + i] as number;
  }
};

export const embedBackward: Kernels['embedBackward'] = (dTable, dOut, tokens, rows, width) => {
  for (let row = 0; row < rows; row++) {
    const to = (tokens[row] as number) * width;
    for (let i = 0; i < width; i++) dTable[to + i] = (dTable[to + i] as number) + (dOut[row * width + i] as number);
  }
};
