import type { Entries } from './entry.js';

/**
 * Several calls in one, for devices whose calls are expensive: a dispatch costs the host a few microseconds and the
 * device a pause, and a decoder makes hundreds of them a token. Each gives the bits of the calls that it replaces.
 */
export const fusedKernels = {
  linearOnto: {
    only: 'fused',
    computes: 'out = before + x W + share: a product, its bias or residual, and the share of an adapter',
    details:
      '`linear`, or `bfloat16Linear` if `inBfloat16`. Each of the two products is a sum of its own that is added once (`linearOntoByCalls`).',
    parameters: [
      'inBfloat16: bool',
      'out: f32[rows * outputs]',
      'before?: before',
      'x: const f32[rows * inputs]',
      'packed: const private weights[packedSize(inputs, outputs)]',
      'share?: share',
      'rows: size',
      'inputs: size',
      'outputs: size',
    ],
  },
  partOfWeightGradient: {
    only: 'fused',
    computes: 'dWeight += scale · xᵀ dOut, where `x` and `dOut` are columns of wider matrices',
    details:
      'A part of `linearWeightGradient`, or of `bfloat16LinearWeightGradient` if `inBfloat16`. Rows of `x` are `xStride` and rows of `dOut` `dOutStride` numbers apart.',
    parameters: [
      'inBfloat16: bool',
      'dWeight: f32[inputs * outputs]',
      'scale: f32',
      'x: const f32[(rows - 1) * xStride + inputs]',
      'xStride: size',
      'dOut: const f32[(rows - 1) * dOutStride + outputs]',
      'dOutStride: size',
      'rows: size',
      'inputs: size',
      'outputs: size',
    ],
  },
  ropeAttentionCached: {
    only: 'fused',
    computes: '`rope`, then `attentionCached`',
    details: 'On return the keys in `qkv` may be turned or not.',
    parameters: [
      'out: f32[rows * heads.heads * heads.headDim]',
      'keys: private f32[indexed(slots) * cacheSlotSize(capacity, heads)]',
      'values: private f32[indexed(slots) * cacheSlotSize(capacity, heads)]',
      'qkv: f32[rows * qkvWidth(heads)]',
      'table: const f32[indexed(positions) * heads.headDim]',
      'slots: const i32[rows] >= 0',
      'positions: const i32[rows] < capacity',
      'alike: const i32[rows] >= 0',
      'rows: size',
      'capacity: size',
      'heads: heads',
    ],
  },
} as const satisfies Entries;
