import type { Entries } from './entry.js';

/** The feed-forward layer's gate. */
export const feedForwardKernels = {
  swiglu: {
    header: 'kernels/elementwise.h',
    reference: 'elementwise.ts',
    computes: 'silu(gate) · up',
    details: 'The gate of the feed-forward layer (Shazeer 2020). Rows of `gateUp` hold the gate, then up.',
    parameters: [
      'out: f32[rows * feedForward]',
      'gateUp: const f32[rows * 2 * feedForward]',
      'rows: size',
      'feedForward: size',
    ],
    examples: { gateUp: '5 * noise()' },
  },
  swigluBackward: {
    header: 'kernels/elementwise.h',
    reference: 'elementwise.ts',
    computes: 'the gradient of `swiglu`',
    details: '`dGateUp` is overwritten.',
    parameters: [
      'dGateUp: f32[rows * 2 * feedForward]',
      'dOut: const f32[rows * feedForward]',
      'gateUp: const f32[rows * 2 * feedForward]',
      'rows: size',
      'feedForward: size',
    ],
    examples: { gateUp: '5 * noise()' },
  },
  geglu: {
    header: 'kernels/elementwise.h',
    reference: 'elementwise.ts',
    computes: 'gelu(gate) · up',
    details:
      'The gate of Gemma’s feed-forward layer (Shazeer 2020), with GELU’s approximation by tanh (Hendrycks & Gimpel 2016): gelu(g) = g (1 + tanh(sqrt(2/π) (g + 0.044715 g³))) / 2. Rows of `gateUp` hold the gate, then up.',
    parameters: [
      'out: f32[rows * feedForward]',
      'gateUp: const f32[rows * 2 * feedForward]',
      'rows: size',
      'feedForward: size',
    ],
    examples: { gateUp: '5 * noise()' },
  },
  gegluBackward: {
    header: 'kernels/elementwise.h',
    reference: 'elementwise.ts',
    computes: 'the gradient of `geglu`',
    details: '`dGateUp` is overwritten.',
    parameters: [
      'dGateUp: f32[rows * 2 * feedForward]',
      'dOut: const f32[rows * feedForward]',
      'gateUp: const f32[rows * 2 * feedForward]',
      'rows: size',
      'feedForward: size',
    ],
    examples: { gateUp: '5 * noise()' },
  },
} as const satisfies Entries;
