import type { Entries } from './entry.js';

/** The value head of a critic: weights [width], then a bias. */
export const valueHeadKernels = {
  valueHead: {
    only: 'host',
    computes: 'values = hidden · weights + bias, row by row',
    sums: 'in one fixed order',
    parameters: [
      'values: f32[rows]',
      'hidden: const f32[rows * width]',
      'head: const f32[width + 1]',
      'rows: size',
      'width: size',
    ],
  },
  valueHeadBackward: {
    only: 'host',
    computes: 'the gradient of `valueHead`',
    details:
      '`dHidden` is overwritten and `dHead` is added to. The slopes, d loss / d values, are in the memory of the host, which computes the loss.',
    sums: 'of dHead: the rows in order',
    parameters: [
      'dHidden: f32[rows * width]',
      'dHead: f32[width + 1]',
      'slopes: const f64[rows]',
      'hidden: const f32[rows * width]',
      'head: const f32[width + 1]',
      'rows: size',
      'width: size',
    ],
  },
} as const satisfies Entries;
