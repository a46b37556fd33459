import type { Entries } from './entry.js';

const place = { header: 'kernels/elementwise.h', reference: 'elementwise.ts' } as const;
const examples = { gateUp: '5 * noise()' } as const;

/** The parts of a gate's entries that all gates share. */
const forward = {
  ...place,
  parameters: [
    'out: f32[rows * feedForward]',
    'gateUp: const f32[rows * 2 * feedForward]',
    'rows: size',
    'feedForward: size',
  ],
  examples,
} as const;
const backward = {
  ...place,
  details: '`dGateUp` is overwritten.',
  parameters: [
    'dGateUp: f32[rows * 2 * feedForward]',
    'dOut: const f32[rows * feedForward]',
    'gateUp: const f32[rows * 2 * feedForward]',
    'rows: size',
    'feedForward: size',
  ],
  examples,
} as const;

/** The feed-forward layer's gates. */
export const feedForwardKernels = {
  swiglu: {
    ...forward,
    computes: 'silu(gate) · up',
    details: 'The gate of the feed-forward layer (Shazeer 2020). Rows of `gateUp` hold the gate, then up.',
  },
  swigluBackward: {
    ...backward,
    computes: 'the gradient of `swiglu`',
  },
  geglu: {
    ...forward,
    computes: 'gelu(gate) · up',
    details:
      'The gate of Gemma’s feed-forward layer (Shazeer 2020), with GELU’s approximation by tanh (Hendrycks & Gimpel 2016): gelu(g) = g (1 + tanh(sqrt(2/π) (g + 0.044715 g³))) / 2. Rows of `gateUp` hold the gate, then up.',
  },
  gegluBackward: {
    ...backward,
    computes: 'the gradient of `geglu`',
  },
} as const satisfies Entries;
