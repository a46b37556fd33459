/** The settings of learning: optimiser, learning-rate schedule, KL penalty and critic of a policy. */

import { criticOptimizerSchema, defaultOptimizer, nonNegative, positive } from '@drmas/engine/model';
import { z } from 'zod';

const count = z.int().min(1);

const ending = {
  updates: count
    .optional()
    .describe('The number of updates until the schedule ends, warm-up included. Default: all updates of the run.'),
  finalFraction: z.number().min(0).max(1).default(0).describe('The fraction that remains at the end.'),
};

/** The schedule of the learning rate after the warm-up, or of the entropy bonus. */
export const scheduleSchema = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('constant') }),
  z.strictObject({ type: z.literal('linear'), ...ending }),
  z.strictObject({ type: z.literal('cosine'), ...ending }),
]);

export type Schedule = z.output<typeof scheduleSchema>;

const referenceSchema = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('initial') }),
  z.strictObject({
    type: z.literal('checkpoint'),
    path: z.string().min(1).describe('A directory with a model that has the same tokenizer.'),
  }),
  z.strictObject({
    type: z.literal('policy'),
    policy: z.string().min(1).describe('The name of another policy of the run, with the same tokenizer.'),
  }),
]);

const controllerSchema = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('fixed') }),
  z.strictObject({
    type: z.literal('adaptive'),
    target: positive.describe(
      'The KL to reach by changing the coefficient: the mean over turns of the mean over tokens.',
    ),
    horizon: positive
      .default(10_000)
      .describe('Turns over which the coefficient changes by at most a fifth (Ziegler et al. 2019, section 2.2).'),
  }),
]);

const klObject = z.strictObject({
  in: z
    .enum(['loss', 'reward', 'advantage'])
    .default('loss')
    .describe(
      '`loss` adds the penalty to the loss. `reward` subtracts it from the reward of each token. `advantage` subtracts ' +
        "it from the token's advantage, after the estimator: the reference is then a teacher (on-policy distillation).",
    ),
  kind: z
    .enum(['k1', 'k2', 'k3', 'abs'])
    .optional()
    .describe(
      'The estimate of the KL at a sampled token, with d = log-prob minus the log-prob of the reference: ' +
        '`k1` = d, `k2` = d^2 / 2, `k3` = exp(-d) + d - 1 (at most 10), `abs` = |d|. Default: `k3` in the loss, else ' +
        '`k1`. In the loss `k1` has no effect on average; in the reward and the advantage the others do not lead to ' +
        'the reference.',
    ),
  coefficient: positive.describe('The factor of the KL.'),
  controller: controllerSchema
    .prefault({ type: 'fixed' })
    .describe('`fixed` keeps the coefficient. `adaptive` changes it so that the KL approaches a target.'),
  reference: referenceSchema
    .prefault({ type: 'initial' })
    .describe(
      'The reference: the policy at the start of reinforcement, after the warm start (`initial`), a model ' +
        'on disk (`checkpoint`), or another policy of the run at the start of the step (`policy`).',
    ),
});

export const klSchema = klObject.transform(({ in: place, kind = place === 'loss' ? 'k3' : 'k1', ...others }) => ({
  in: place,
  kind,
  ...others,
}));

export type KlSettings = z.output<typeof klSchema>;

export const DEFAULT_VALUE_CLIP = 0.5;

export const criticSchema = z.strictObject({
  optimizer: criticOptimizerSchema.prefault({ type: defaultOptimizer }).describe("The critic's optimiser."),
  warmupSteps: z.int().min(0).default(5).describe('Updates over which the learning rate rises to its full value.'),
  schedule: scheduleSchema.prefault({ type: 'constant' }).describe('The learning-rate schedule after the warm-up.'),
  clipNorm: nonNegative
    .default(1)
    .describe('Gradients with a larger norm are scaled down to this norm. 0 switches clipping off.'),
  epochs: count.default(1).describe("Passes over each step's turns."),
  miniBatches: count.default(1).describe('Updates in one pass; each takes its share of the turns.'),
  clip: positive
    .default(DEFAULT_VALUE_CLIP)
    .describe('The largest change of a value in the updates of one step. The value loss does not push it further.'),
  aheadSteps: z
    .int()
    .min(0)
    .default(0)
    .describe('Steps in which only the critic learns: the first ones in which an agent of the policy is called.'),
});

export type CriticSettings = z.output<typeof criticSchema>;

export const priceSchema = z
  .strictObject({
    read: nonNegative.default(0).describe('The price of a million tokens of prompts.'),
    write: nonNegative.default(0).describe('The price of a million tokens of responses.'),
    train: nonNegative.default(0).describe('The price of a million tokens in updates, prompts and responses.'),
  })
  .optional()
  .describe(
    'The price of a million tokens, in your currency. With a price, steps, evaluations and forecasts ' +
      'report their costs. There is no price by default.',
  );
