import { z } from 'zod';
import { decay, defineOptimizer, nonNegative, positive } from './define-optimizer.js';

/** Settings of SGD. */
export type SgdSettings = Readonly<z.output<ReturnType<typeof schema>>>;

const schema = (learningRate: number) =>
  z
    .strictObject({
      type: z.literal('sgd'),
      learningRate: positive.default(learningRate).describe('The learning rate after the warm-up.'),
      momentum: decay.default(0).describe("SGD's momentum, without dampening."),
      nesterov: z
        .boolean()
        .default(false)
        .describe("Nesterov's momentum, which looks ahead along the last step. It needs a momentum above 0."),
      weightDecay: nonNegative.default(0).describe('This times the weights is added to the gradient.'),
    })
    .refine(({ nesterov, momentum }) => !nesterov || momentum > 0, {
      path: ['nesterov'],
      message: 'looks ahead along the momentum: expected a momentum above 0 with it',
    });

/** torch.optim.SGD without dampening: the weight decay joins the gradient and, with it, the momentum. */
export const sgd = defineOptimizer({
  type: 'sgd',
  rates: { policy: 0.1, critic: 0.1 },
  schema,
  buffers: { momentum: ({ momentum }) => momentum > 0 },
  takesScaleOut: false,
  step(kernels, { weights, gradient, buffers, length, gradientScale }, settings) {
    const directions = buffers.momentum;
    kernels.sgd({ weights, gradient, directions, length, settings: { ...settings, gradientScale } });
  },
});
