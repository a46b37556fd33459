/** The settings of the warm start. */
import { z } from 'zod';

const nonNegative = z.number().min(0);
const positive = z.number().gt(0);
const beta = z.number().min(0).lt(1);
const count = z.int().min(1);

export const warmStartSchema = z.strictObject({
  steps: count.default(2000).describe('The most steps of supervised training.'),
  batch: count.default(64).describe('Demonstrations in one step.'),
  learningRate: positive.default(8e-3).describe("AdamW's learning rate after the warm-up."),
  warmupSteps: z.int().min(0).default(20).describe('Steps over which the learning rate rises to its full value.'),
  finalLearningRate: z
    .number()
    .min(0)
    .max(1)
    .default(0.1)
    .describe('The cosine schedule ends at this fraction of `learningRate`.'),
  weightDecay: nonNegative.default(0.01).describe("AdamW's weight decay, apart from the gradient."),
  beta1: beta.default(0.9).describe("AdamW's decay of the gradients' running mean."),
  beta2: beta.default(0.95).describe("AdamW's decay of the squared gradients' running mean."),
  epsilon: positive.default(1e-8).describe('AdamW adds this to the root of the mean of the squared gradients.'),
  clipNorm: nonNegative
    .default(1)
    .describe('Gradients with a larger norm are scaled down to this norm. 0 switches clipping off.'),
  lossTarget: positive
    .optional()
    .describe('The warm start ends early if the mean loss of the last 50 steps is at most this.'),
  seed: z
    .int()
    .min(0)
    .default(1)
    .describe('The seed of the first weights and of the demonstrations. `--seed` does not change it.'),
  share: z
    .enum(['base', 'policy'])
    .default('base')
    .describe(
      '`base` trains one model and copies it into all policies, which must have the same model. `policy` ' +
        'trains each policy on the demonstrations of its own agents, and is the default if all policies are adapters ' +
        'on checkpoints: one adapter that learned all demonstrations would begin each agent with the habits of the others.',
    ),
});
