import type { Entries } from './entry.js';

/** The output head: log-probs, their gradients, sampling. */
export const outputHeadKernels = {
  tokenLogprobs: {
    header: 'kernels/head.h',
    reference: 'head.ts',
    computes: 'log-prob of the target, log-sum-exp and entropy of each row of logits at its temperature',
    details:
      'With z = logits · inverseTemperature[r]: logSumExp = log Σ exp z, logprobs = z[target] − logSumExp, entropy = −Σ p log p (nats).',
    sums: 'over the vocabulary: 16 lanes, then the tree',
    parameters: [
      'logprobs: f32[rows]',
      'logSumExp: f32[rows]',
      'entropy: f32[rows]',
      'logits: const f32[rows * vocabSize]',
      'targets: const i32[rows] < vocabSize',
      'inverseTemperature: const f32[rows]',
      'rows: size',
      'vocabSize: size',
    ],
    examples: { logits: '6 * noise()', inverseTemperature: '1 + noise() / 2' },
  },
  tokenLogprobsBackward: {
    header: 'kernels/head.h',
    reference: 'head.ts',
    computes: 'replaces logits by the gradient of the loss, given the gradient of the log-probs',
    details: 'In place: logits become dLogprobs[r] · inverseTemperature[r] · (1{v = target} − p_v).',
    parameters: [
      'logits: f32[rows * vocabSize]',
      'dLogprobs: const f32[rows]',
      'logSumExp: const f32[rows]',
      'targets: const i32[rows] < vocabSize',
      'inverseTemperature: const f32[rows]',
      'rows: size',
      'vocabSize: size',
    ],
    examples: { logits: '6 * noise()', logSumExp: '9 + noise()', inverseTemperature: '1 + noise() / 2' },
  },
  tokenEntropyBackward: {
    header: 'kernels/head.h',
    reference: 'head.ts',
    computes: '`tokenLogprobsBackward` for a loss that also has a gradient on the entropies',
    details:
      'In place: logits become inverseTemperature[r] · (dLogprobs[r] · (1{v = target} − p_v) − dEntropy[r] · p_v (log p_v + entropy[r])). Rows with dEntropy 0 have the bits of `tokenLogprobsBackward`.',
    parameters: [
      'logits: f32[rows * vocabSize]',
      'dLogprobs: const f32[rows]',
      'dEntropy: const f32[rows]',
      'logSumExp: const f32[rows]',
      'entropy: const f32[rows]',
      'targets: const i32[rows] < vocabSize',
      'inverseTemperature: const f32[rows]',
      'rows: size',
      'vocabSize: size',
    ],
    examples: {
      logits: '6 * noise()',
      logSumExp: '9 + noise()',
      entropy: '2 + noise()',
      inverseTemperature: '1 + noise() / 2',
    },
  },
  sampleTokens: {
    header: 'kernels/head.h',
    reference: 'head.ts',
    computes: 'one token a row: the cumulative distribution inverted at a uniform number, after top-k and top-p',
    details:
      'Inverts the cumulative distribution of softmax(logits · inverseTemperature) at uniforms[r], in order of token id, after keeping the topK most probable tokens (0: all; ties go to the lower id) and of those the smallest set, at least one token, that reaches the share topP of their probability (1: all). A row with inverseTemperature 0 takes the most probable token (ties: the lower id) and its log-prob under softmax(logits). `logprobs` are over the full vocabulary.',
    sums: 'log-probs: as `tokenLogprobs`, with the same bits; cumulative distribution: in double precision, in order of id',
    parameters: [
      'tokens: i32[rows]',
      'logprobs: f32[rows]',
      'logits: const f32[rows * vocabSize]',
      'uniforms: const f32[rows]',
      'inverseTemperature: const f32[rows]',
      'topK: const i32[rows]',
      'topP: const f32[rows]',
      'rows: size',
      'vocabSize: size',
    ],
    examples: {
      logits: '6 * noise()',
      uniforms: '(1 + noise()) / 2',
      inverseTemperature: 'r % 7 === 0 ? 0 : 1 + noise() / 2',
      topK: 'below(20)',
      topP: '0.95',
    },
  },
} as const satisfies Entries;
