import type { Entries } from './entry.js';

/** RMSNorm, of rows and of heads. */
export const normKernels = {
  rmsNorm: {
    header: 'kernels/norm.h',
    reference: 'norm.ts',
    computes: 'x / sqrt(mean(x²) + epsilon) · gain, row by row',
    details:
      'RMSNorm (Zhang & Sennrich 2019). `inverse` receives 1 / sqrt(mean(x²) + epsilon) of each row for the backward pass.',
    sums: 'over a row: 16 lanes in steps of 16, then a fixed tree over the lanes',
    parameters: [
      'out: f32[rows * width]',
      'inverse: f32[rows]',
      'x: const f32[rows * width]',
      'gain: const f32[width]',
      'rows: size',
      'width: size',
      'epsilon: f32',
    ],
  },
  rmsNormBackward: {
    header: 'kernels/norm.h',
    reference: 'norm.ts',
    computes: 'dx += s gain dOut − x s³ mean(gain dOut x) with s = inverse; dGain += Σ dOut x s',
    details:
      '`dx` and `dGain` are added to. A kernel set with `fused` takes an empty `dGain` and then skips that gradient.',
    sums: 'over a row: 16 lanes, then the tree; of dGain: the rows in order',
    parameters: [
      'dx: f32[rows * width]',
      'dGain: f32[width]',
      'dOut: const f32[rows * width]',
      'x: const f32[rows * width]',
      'gain: const f32[width]',
      'inverse: const f32[rows]',
      'rows: size',
      'width: size',
    ],
    examples: { inverse: '1 + noise() / 2' },
  },
  headNorm: {
    header: 'kernels/norm.h',
    reference: 'norm.ts',
    computes: '`rmsNorm` of every query and every key, in place',
    details:
      '`qkv` holds queries, keys and values side by side in each row. Queries are scaled by `queryGain`, keys by `keyGain`. The inverses are for the backward pass.',
    sums: 'over a head: as over a row',
    parameters: [
      'qkv: f32[rows * qkvWidth(heads)]',
      'queryInverse: f32[rows * heads.heads]',
      'keyInverse: f32[rows * heads.kvHeads]',
      'queryGain: const f32[heads.headDim]',
      'keyGain: const f32[heads.headDim]',
      'rows: size',
      'heads: heads',
      'epsilon: f32',
    ],
    examples: { qkv: '2 * noise()' },
  },
  headNormBackward: {
    header: 'kernels/norm.h',
    reference: 'norm.ts',
    computes: 'the gradient of `headNorm`, in place; dQueryGain and dKeyGain are added to',
    details:
      'On entry the queries and keys in `dQkv` hold the gradient of the result of `headNorm`, on return the gradient of its input; `qkv` holds the values before `headNorm`. A kernel set with `fused` takes empty gradients of gains and then skips them.',
    sums: 'of the gains: the rows in order, and in each its heads',
    parameters: [
      'dQkv: f32[rows * qkvWidth(heads)]',
      'dQueryGain: f32[heads.headDim]',
      'dKeyGain: f32[heads.headDim]',
      'qkv: const f32[rows * qkvWidth(heads)]',
      'queryGain: const f32[heads.headDim]',
      'keyGain: const f32[heads.headDim]',
      'queryInverse: const f32[rows * heads.heads]',
      'keyInverse: const f32[rows * heads.kvHeads]',
      'rows: size',
      'heads: heads',
    ],
    examples: { queryInverse: '1 + noise() / 2', keyInverse: '1 + noise() / 2' },
  },
} as const satisfies Entries;
