/** How a policy learns: the unions of its optimiser and its learning rate, told apart by `type`. */
import { z } from 'zod';
import type { OptimizerSettings } from '../contract/optimizer.js';

const nonNegative = z.number().min(0);
const positive = z.number().gt(0);
/** Share of the past that is kept. */
const decay = z.number().min(0).lt(1);
const count = z.int().min(1);

/** The optimiser that a policy has where it names none. */
export const defaultOptimizer = 'adamw';

const sgdSchema = z
  .strictObject({
    type: z.literal('sgd'),
    learningRate: positive.default(0.1),
    momentum: decay.default(0),
    nesterov: z.boolean().default(false),
    weightDecay: nonNegative.default(0),
  })
  .refine(({ nesterov, momentum }) => !nesterov || momentum > 0, {
    path: ['nesterov'],
    message: 'looks ahead along the momentum: expected a momentum above 0 with it',
  });

const adamwSchema = (learningRate: number) =>
  z.strictObject({
    type: z.literal('adamw').default(defaultOptimizer),
    learningRate: positive.default(learningRate),
    beta1: decay.default(0.9),
    beta2: decay.default(0.99),
    epsilon: positive.default(1e-8),
    weightDecay: nonNegative.default(0),
  });

export const optimizerSchema = z.discriminatedUnion('type', [
  adamwSchema(2e-4),
  sgdSchema,
]) satisfies z.ZodType<OptimizerSettings>;

/** What a schedule that ends needs. */
const ending = {
  /** Updates until the rate is at its end, the warm-up's among them; all of the run's where it is not given. */
  updates: count.optional(),
  /** The share of the rate that is left then. */
  finalFraction: z.number().min(0).max(1).default(0),
};

/** What becomes of the learning rate after the warm-up. */
export const scheduleSchema = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('constant') }),
  z.strictObject({ type: z.literal('linear'), ...ending }),
  z.strictObject({ type: z.literal('cosine'), ...ending }),
]);

export type Schedule = z.output<typeof scheduleSchema>;

/** Whose log-probs a policy is held near. */
const referenceSchema = z.discriminatedUnion('type', [
  /** The policy as it is when reinforcement begins: after the warm start. */
  z.strictObject({ type: z.literal('initial') }),
  /** A model in a directory, with the same tokenizer. */
  z.strictObject({ type: z.literal('checkpoint'), path: z.string().min(1) }),
  /** Another policy of the run as it is when the step begins, with the same tokenizer. */
  z.strictObject({ type: z.literal('policy'), policy: z.string().min(1) }),
]);

const controllerSchema = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('fixed') }),
  /** Moves the coefficient so that the KL comes near `target`: Ziegler et al. 2019, section 2.2. */
  z.strictObject({
    type: z.literal('adaptive'),
    target: positive,
    /** Turns over which the coefficient changes by at most a fifth. */
    horizon: positive.default(10_000),
  }),
]);

/** What keeps a policy near a reference. */
export const klSchema = z.strictObject({
  /** A term of the loss, or a price of every token taken off its reward. */
  in: z.enum(['loss', 'reward']).default('loss'),
  /** How the KL is estimated from sampled tokens. */
  kind: z.enum(['k1', 'k2', 'k3', 'abs']).default('k3'),
  /** Above 0: with 0 there would be nothing to compute, and an adaptive controller could not leave it. */
  coefficient: positive,
  controller: controllerSchema.prefault({ type: 'fixed' }),
  reference: referenceSchema.prefault({ type: 'initial' }),
});

export type KlSettings = z.output<typeof klSchema>;

/** How a policy's critic learns, where the estimator uses one. */
export const criticSchema = z.strictObject({
  optimizer: z
    .discriminatedUnion('type', [adamwSchema(1e-3), sgdSchema])
    .prefault({ type: defaultOptimizer }) satisfies z.ZodType<OptimizerSettings>,
  /** Updates over which its learning rate rises. */
  warmupSteps: z.int().min(0).default(5),
  schedule: scheduleSchema.prefault({ type: 'constant' }),
  /** Gradients with a larger norm are scaled down to this one; 0 switches clipping off. */
  clipNorm: nonNegative.default(1),
  /** Passes over each step's turns. */
  epochs: count.default(1),
  /** Updates a pass. */
  miniBatches: count.default(1),
  /** A value may move this far in a step's updates before the loss stops it. */
  clip: positive.default(0.5),
  /** Steps at the beginning in which only the critic learns. */
  aheadSteps: z.int().min(0).default(0),
});

export type CriticSettings = z.output<typeof criticSchema>;
