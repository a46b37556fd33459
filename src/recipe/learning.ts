/** The settings of learning: optimiser, learning-rate schedule, KL penalty and critic of a policy. */
import { z } from 'zod';
import type { OptimizerSettings } from '../contract/optimizer-settings.js';

const nonNegative = z.number().min(0);
const positive = z.number().gt(0);
/** The decay of a running mean: the share of the old value that is kept. */
const decay = z.number().min(0).lt(1);
const count = z.int().min(1);

/** The default optimiser of a policy. */
export const defaultOptimizer = 'adamw';

const sgdSchema = z
  .strictObject({
    type: z.literal('sgd'),
    learningRate: positive.default(0.1).describe('The learning rate after the warm-up.'),
    momentum: decay.default(0).describe('The share of the last step that is taken again, without dampening.'),
    nesterov: z
      .boolean()
      .default(false)
      .describe("Nesterov's momentum, which looks ahead along the last step. It wants a momentum above 0."),
    weightDecay: nonNegative.default(0).describe('This times the weights is added to the gradient.'),
  })
  .refine(({ nesterov, momentum }) => !nesterov || momentum > 0, {
    path: ['nesterov'],
    message: 'looks ahead along the momentum: expected a momentum above 0 with it',
  });

const nigtSchema = z.strictObject({
  type: z.literal('nigt'),
  learningRate: positive
    .default(0.05)
    .describe('The length of every step after the warm-up, whatever the length of the gradient.'),
  momentum: decay
    .default(0.8)
    .describe(
      'The share of the last direction that is kept. Gradients are taken, and the policy plays, m / (1 - m) steps ' +
        'ahead of where the weights would be.',
    ),
});

const adamwSchema = (learningRate: number) =>
  z.strictObject({
    type: z.literal('adamw').default(defaultOptimizer),
    learningRate: positive.default(learningRate).describe('The learning rate after the warm-up.'),
    beta1: decay.default(0.9).describe("The decay of the gradients' running mean."),
    beta2: decay.default(0.99).describe("The decay of the squared gradients' running mean."),
    epsilon: positive.default(1e-8).describe("What is added to the root of the squared gradients' mean."),
    weightDecay: nonNegative
      .default(0)
      .describe(
        'This times the learning rate is the share of every weight that an update takes away, apart from the gradient.',
      ),
  });

export const optimizerSchema = z.discriminatedUnion('type', [
  adamwSchema(2e-4),
  sgdSchema,
  nigtSchema,
]) satisfies z.ZodType<OptimizerSettings>;

/** The settings of a schedule that ends. */
const ending = {
  updates: count
    .optional()
    .describe(
      "Updates until the rate is at its end, those of the warm-up included; all of the run's where it is not given.",
    ),
  finalFraction: z.number().min(0).max(1).default(0).describe('The fraction of the learning rate that is left then.'),
};

/** The schedule of the learning rate after the warm-up. */
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
      'The KL that the coefficient is moved towards: the mean over turns of the mean over tokens.',
    ),
    horizon: positive
      .default(10_000)
      .describe('Turns over which the coefficient changes by at most a fifth (Ziegler et al. 2019, section 2.2).'),
  }),
]);

/** The KL penalty that keeps a policy near a reference. */
export const klSchema = z.strictObject({
  in: z
    .enum(['loss', 'reward'])
    .default('loss')
    .describe(
      "Where the penalty goes: `loss` adds a term to the loss, `reward` subtracts it from each token's reward.",
    ),
  kind: z
    .enum(['k1', 'k2', 'k3', 'abs'])
    .default('k3')
    .describe(
      "How the KL is estimated at a sampled token, with d = log-prob - the reference's: `k1` = d, `k2` = d^2 / " +
        '2, `k3` = exp(-d) + d - 1 (at most 10), `abs` = |d|. In the loss `k1` has no effect on average.',
    ),
  coefficient: positive.describe('What the KL is multiplied by.'),
  controller: controllerSchema
    .prefault({ type: 'fixed' })
    .describe(
      'Whether the coefficient stays as it is (`fixed`) or is moved so that the KL comes near a target (`adaptive`).',
    ),
  reference: referenceSchema
    .prefault({ type: 'initial' })
    .describe(
      'The reference: the policy as it is when reinforcement begins, after the warm start (`initial`), a model ' +
        'on disk (`checkpoint`), or another policy of the run as it is when the step begins (`policy`).',
    ),
});

export type KlSettings = z.output<typeof klSchema>;

/** The settings of a policy's critic, for estimators that need values. */
export const criticSchema = z.strictObject({
  optimizer: z
    .discriminatedUnion('type', [adamwSchema(1e-3), sgdSchema])
    .prefault({ type: defaultOptimizer })
    .describe("The critic's optimiser.") satisfies z.ZodType<OptimizerSettings>,
  warmupSteps: z.int().min(0).default(5).describe('Updates over which the learning rate rises to its full value.'),
  schedule: scheduleSchema.prefault({ type: 'constant' }).describe('The learning-rate schedule after the warm-up.'),
  clipNorm: nonNegative
    .default(1)
    .describe('Gradients with a larger norm are scaled down to this one; 0 switches clipping off.'),
  epochs: count.default(1).describe("Passes over each step's turns."),
  miniBatches: count.default(1).describe('Updates in one pass; each takes its share of the turns.'),
  clip: positive.default(0.5).describe("How far a value may move in a step's updates before the loss stops it."),
  aheadSteps: z.int().min(0).default(0).describe('Steps at the beginning of the run in which only the critic learns.'),
});

export type CriticSettings = z.output<typeof criticSchema>;

/** The price of a policy's tokens. */
export const priceSchema = z
  .strictObject({
    read: nonNegative.default(0).describe('The price of a million tokens of prompts.'),
    write: nonNegative.default(0).describe('The price of a million tokens of responses.'),
    train: nonNegative.default(0).describe('The price of a million tokens in updates, prompts and responses.'),
  })
  .optional()
  .describe(
    'What a million tokens cost, in your currency: steps, evaluations, `--dry-run` and `probe` then say what they ' +
      'cost. There is no price by default.',
  );
