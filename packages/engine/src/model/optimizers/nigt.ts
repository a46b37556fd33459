import { z } from 'zod';
import type { Floats } from '../../tensor/memory.js';
import { decay, defineOptimizer, positive } from './define-optimizer.js';

const schema = (learningRate: number) =>
  z.strictObject({
    type: z.literal('nigt'),
    learningRate: positive
      .default(learningRate)
      .describe("The length of every step after the warm-up. The gradient's length does not change it."),
    momentum: decay
      .default(0.8)
      .describe(
        'The share of the last direction that is kept. Gradients are taken, and the policy plays, m / (1 - m) steps ' +
          'ahead of where the weights would be.',
      ),
  });

/** The settings of the optimiser `nigt`. */
export type NigtSettings = Readonly<z.output<ReturnType<typeof schema>>>;

/**
 * Steps of one length along a momentum whose gradients are taken ahead of the weights: N-PG-IGT (Fatkhullin, Barakat,
 * Kireeva, He 2023, arXiv 2302.01734, algorithm 1). A momentum of 0 keeps no direction and looks nowhere ahead.
 */
export const nigt = defineOptimizer({
  type: 'nigt',
  rates: { policy: 0.05 },
  schema,
  buffers: { direction: true, ahead: true },
  takesScaleOut: true,
  step(kernels, { weights, gradient, buffers, length, step, gradientScale }, settings) {
    const [direction, ahead] = [buffers.direction as Floats, buffers.ahead as Floats];
    kernels.nigt({ weights, gradient, direction, ahead, length, settings: { ...settings, step, gradientScale } });
  },
});
