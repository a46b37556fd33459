import { z } from 'zod';
import type { Floats } from '../../tensor/memory.js';
import { decay, defineOptimizer, nonNegative, positive } from './define-optimizer.js';

/** Settings of AdamW. */
export type AdamWSettings = Readonly<z.output<ReturnType<typeof schema>>>;

const schema = (learningRate: number) =>
  z.strictObject({
    type: z.literal('adamw').default('adamw'),
    learningRate: positive.default(learningRate).describe('The learning rate after the warm-up.'),
    beta1: decay.default(0.9).describe("The decay of the gradients' running mean."),
    beta2: decay.default(0.99).describe("The decay of the squared gradients' running mean."),
    epsilon: positive.default(1e-8).describe("The number added to the root of the squared gradients' mean."),
    weightDecay: nonNegative
      .default(0)
      .describe(
        'This times the learning rate is the share of every weight that an update takes away, apart from the gradient.',
      ),
  });

/** AdamW (Loshchilov and Hutter 2019), the default. */
export const adamw = defineOptimizer({
  type: 'adamw',
  rates: { policy: 2e-4, critic: 1e-3 },
  schema,
  buffers: { first_moment: true, second_moment: true },
  takesScaleOut: true,
  step(kernels, { weights, gradient, buffers, length, step, gradientScale }, settings) {
    const [first, second] = [buffers.first_moment as Floats, buffers.second_moment as Floats];
    const stepSettings = { ...settings, step, gradientScale };
    kernels.adamw({ weights, gradient, firstMoment: first, secondMoment: second, length, settings: stepSettings });
  },
});
