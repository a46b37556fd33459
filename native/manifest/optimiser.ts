import type { Entries } from './entry.js';

/** The optimiser, and what the processor can do at most. */
export const optimiserKernels = {
  sumOfSquares: {
    header: 'kernels/optimizer.h',
    reference: 'optimiser.ts',
    computes: 'Σ x²',
    sums: 'in double precision: 8 lanes over each of fixed chunks, chunks in order',
    parameters: ['x: const f32[length]', 'length: size'],
    returns: 'number',
  },
  add: {
    header: 'kernels/elementwise.h',
    reference: 'optimiser.ts',
    computes: 'out += x',
    parameters: ['out: f32[length]', 'x: const f32[length]', 'length: size'],
  },
  adamw: {
    header: 'kernels/optimizer.h',
    reference: 'optimiser.ts',
    computes: 'one step of AdamW on weights and both moments',
    parameters: [
      'weights: f32[length]',
      'gradient: const f32[length]',
      'firstMoment: f32[length]',
      'secondMoment: f32[length]',
      'length: size',
      'settings: adamw',
    ],
    examples: { secondMoment: '(1.5 + noise()) / 8' },
  },
  fmaPeak: {
    header: 'kernels/peak.h',
    nativeOnly: true,
    computes: 'multiply-adds on registers alone: what the processor can do at most',
    parameters: ['tasks: size'],
    returns: 'number',
  },
} as const satisfies Entries;
