import type { Entries } from './entry.js';

/** Copies and constants in memory that the host may be unable to index. */
export const memoryKernels = {
  copy: {
    only: 'host',
    computes: 'the first from.length numbers of `to` become the numbers of `from`',
    parameters: ['to: f32[from.length]', 'from: const f32[from.length]'],
  },
  fill: {
    only: 'host',
    computes: 'all numbers of `x` become `value`',
    parameters: ['x: f32[x.length]', 'value: f32'],
  },
  repeat: {
    only: 'host',
    computes: 'out [rows, row.length] = `row` in each row',
    parameters: ['out: f32[rows * row.length]', 'row: const f32[row.length]', 'rows: size'],
  },
  copyBlock: {
    only: 'host',
    computes: 'a block of a matrix: to[r, c] = scale · from[r, c], or added to `to` with `accumulate`',
    details:
      'For r < rows and c < columns. Neighbouring rows are `toStride` and `fromStride` numbers apart. Numbers of `to` outside the block stay.',
    parameters: [
      'to: f32[(rows - 1) * toStride + columns]',
      'toStride: size',
      'from: const f32[(rows - 1) * fromStride + columns]',
      'fromStride: size',
      'rows: size',
      'columns: size',
      'scale: f32',
      'accumulate: bool',
    ],
  },
} as const satisfies Entries;
