import type { Entries } from './entry.js';

/** The embedding. */
export const embeddingKernels = {
  embed: {
    header: 'kernels/elementwise.h',
    reference: 'elementwise.ts',
    computes: 'out = table[token], row by row',
    parameters: [
      'out: f32[rows * width]',
      'table: const weights[indexed(tokens) * width]',
      'tokens: const i32[rows] >= 0',
      'rows: size',
      'width: size',
    ],
    examples: { tokens: 'below(vocabSize)' },
  },
  embedBackward: {
    header: 'kernels/elementwise.h',
    reference: 'elementwise.ts',
    computes: 'dTable[token] += dOut',
    details: '`dTable` is added to.',
    sums: 'the rows in order; threads share the columns',
    parameters: [
      'dTable: f32[indexed(tokens) * width]',
      'dOut: const f32[rows * width]',
      'tokens: const i32[rows] >= 0',
      'rows: size',
      'width: size',
    ],
    examples: { tokens: 'below(vocabSize)' },
  },
} as const satisfies Entries;
