import { isBfloat16, widen } from '../bfloat16.js';
import type { HostKernels } from '../kernels.js';

export const embed: HostKernels['embed'] = ({ out, table, tokens, rows, width }) => {
  for (let row = 0; row < rows; row++) {
    const from = (tokens[row] as number) * width;
    const to = out.subarray(row * width, (row + 1) * width);
    if (isBfloat16(table)) widen(to, table.subarray(from, from + width));
    else to.set(table.subarray(from, from + width));
  }
};

export const embedBackward: HostKernels['embedBackward'] = ({ dTable, dOut, tokens, rows, width }) => {
  for (let row = 0; row < rows; row++) {
    const to = (tokens[row] as number) * width;
    for (let i = 0; i < width; i++) dTable[to + i] = (dTable[to + i] as number) + (dOut[row * width + i] as number);
  }
};
