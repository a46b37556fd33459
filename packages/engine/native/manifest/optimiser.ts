import type { Entries } from './entry.js';

/** Optimisers, and the measurement of the processor. */
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
    details: '`out` is added to.',
    parameters: ['out: f32[length]', 'x: const f32[length]', 'length: size'],
  },
  adamw: {
    header: 'kernels/optimizer.h',
    reference: 'optimiser.ts',
    computes: 'one step of AdamW on weights and both moments',
    details:
      'AdamW (Loshchilov & Hutter 2019) with g = gradient · gradientScale; the gradient stays as it is. weights −= learningRate · weightDecay · weights; m, v ← moving means of g, g²; weights −= learningRate · m̂ / (sqrt(v̂) + epsilon), where the hats divide by 1 − betaᵗ.',
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
  sgd: {
    only: 'host',
    computes: 'one step of SGD with momentum on weights',
    details:
      'The step of torch.optim.SGD with g = gradient · gradientScale + weightDecay · weights. With `directions`: directions = momentum · directions + g, and the step goes along directions, or along g + momentum · directions with `nesterov`. Without `directions` the step goes along g. The gradient stays as it is.',
    parameters: [
      'weights: f32[length]',
      'gradient: const f32[length]',
      'directions?: f32[length]',
      'length: size',
      'settings: sgd',
    ],
  },
  nigt: {
    only: 'host',
    computes: 'one step of N-PG-IGT on weights',
    details:
      'N-PG-IGT (Fatkhullin, Barakat, Kireeva, He 2023, arXiv 2302.01734, algorithm 1), after the normalised SGD of Cutkosky and Mehta 2020 (arXiv 2002.03305). direction = m · direction + (1 − m) · g with g = gradient · gradientScale and m the momentum; the first direction is g. The iterate moves by the learning rate along −direction / |direction|; it stays if the direction is 0. The weights become the iterate plus m / (1 − m) times that move. The next gradient is taken there, so that the direction has no bias if the objective is quadratic. `ahead` holds weights − iterate.',
    sums: '|direction|²: in order',
    parameters: [
      'weights: f32[length]',
      'gradient: const f32[length]',
      'direction: f32[length]',
      'ahead: f32[length]',
      'length: size',
      'settings: nigt',
    ],
  },
  fmaPeak: {
    header: 'kernels/peak.h',
    only: 'native',
    computes: 'multiply-adds on registers alone: what the processor can do at most',
    details:
      'Runs `tasks` tasks on all threads. Returns the number of floating-point operations; divided by the time taken it is the processor’s peak.',
    parameters: ['tasks: size'],
    returns: 'number',
  },
} as const satisfies Entries;
