/** The sections of a recipe: every key, its range and its default stand here and nowhere else. */
import { z } from 'zod';
import { DEFAULT_ESTIMATOR, estimatorSchema } from '../advantage/estimators/index.js';
import { gatewaySchema } from '../agents/gateway/gateway-settings.js';
import { backendSchema } from '../backends/registry.js';
import { samplerSchema } from '../backends/samplers/sampler-spec.js';
import { PRECISIONS } from '../contract/architecture.js';
import { isObject } from '../core/validation/objects.js';
import { lossSchema } from '../loss/loss-spec.js';
import { completeModel } from '../model/model-spec.js';
import { modelSchema, rolloutSchema } from './choices.js';
import { frozenSchema } from './frozen.js';
import { criticSchema, defaultOptimizer, klSchema, optimizerSchema, priceSchema, scheduleSchema } from './learning.js';
import { agentSchema, evaluationSampling } from './sections/agent-section.js';
import { trainingSchema } from './sections/training-section.js';

const nonNegative = z.number().min(0);
const positive = z.number().gt(0);
const beta = z.number().min(0).lt(1);
const count = z.int().min(1);

const policySchema = z.strictObject({
  model: modelSchema
    .transform(completeModel)
    .describe("The policy's model; where it is not given, that of the recipe's top level."),
  precision: z
    .enum(PRECISIONS)
    .default('float32')
    .describe(
      'What matrix products multiply, in playing and training alike: `float32` numbers as they are, or both operands ' +
        'rounded to `bfloat16`, which processors with AVX512-BF16 do faster. Sums, weights and all else stay in ' +
        'float32.',
    ),
  optimizer: optimizerSchema
    .prefault({ type: defaultOptimizer })
    .describe('The optimiser. A run that is resumed with another type begins that one anew.'),
  warmupSteps: z
    .int()
    .min(0)
    .default(5)
    .describe(
      'Updates over which the learning rate rises to its full value: a fresh AdamW moves every weight by the ' +
        'whole rate in its first steps.',
    ),
  schedule: scheduleSchema
    .prefault({ type: 'constant' })
    .describe('The learning-rate schedule after the warm-up. It depends on the number of the update alone.'),
  kl: klSchema.optional().describe('A KL penalty that keeps the policy near a reference. There is none by default.'),
  critic: criticSchema
    .optional()
    .describe(
      "How the policy's critic learns. It is there, with these defaults, where the estimator uses values (`gae`).",
    ),
  clipNorm: nonNegative
    .default(1)
    .describe('Gradients with a larger norm are scaled down to this one; 0 switches clipping off.'),
  price: priceSchema,
  epochs: count.default(1).describe("Passes over each step's samples."),
  miniBatches: count.default(1).describe('Updates in one pass; each takes its share of the samples.'),
  entropyCoefficient: nonNegative
    .default(0)
    .describe(
      "The coefficient of the entropy bonus: this times the policy's entropy at each token is subtracted from " +
        'the loss.',
    ),
  loss: lossSchema
    .optional()
    .describe("A loss for this policy alone, which replaces the recipe's as a whole. Its keys are those of `loss`."),
  backend: backendSchema
    .optional()
    .describe(
      "What holds this policy and computes it, in place of the recipe's `backend` as a whole. Its keys are those of " +
        '`backend`. Policies whose settings are equal share one.',
    ),
  sampler: samplerSchema
    .optional()
    .describe(
      "The engine that samples this policy, in place of the recipe's `sampler` as a whole. Its keys are those of " +
        '`sampler`.',
    ),
});

const warmStartSchema = z.strictObject({
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
  epsilon: positive.default(1e-8).describe("What AdamW adds to the root of the squared gradients' mean."),
  clipNorm: nonNegative
    .default(1)
    .describe('Gradients with a larger norm are scaled down to this one; 0 switches clipping off.'),
  lossTarget: positive
    .optional()
    .describe('The warm start ends early when the mean loss of the last 50 steps is at or below this.'),
  seed: z.int().min(0).default(1).describe('The seed of first weights and demonstrations. `--seed` does not touch it.'),
  share: z
    .enum(['base', 'policy'])
    .default('base')
    .describe(
      '`base` trains one model and copies it into every policy, which must all have the same model; `policy` ' +
        "trains each on its own agents' demonstrations.",
    ),
});

const fieldName = z.string().min(1);

const evaluationSchema = z.strictObject({
  every: count.default(20).describe('Steps between evaluations. Step 0 and the last step are always evaluated.'),
  tasks: count.default(256).describe('Held-out tasks in one evaluation, of each benchmark.'),
  samples: count.default(4).describe('Episodes of each task: the k of avg@k.'),
  samplesDuring: count
    .optional()
    .describe(
      'Episodes of each task in the evaluations between the first and the last; `samples` where it is not given.',
    ),
  level: z.number().gt(0).lt(1).default(0.95).describe('The confidence level of the intervals.'),
  by: z
    .union([fieldName.transform((field) => [field]), z.array(fieldName).min(1).readonly()], {
      error: 'expected the name of a field, or a list of names',
    })
    .optional()
    .describe('Fields of tasks, in their metadata or their data, by which the scores are also divided.'),
  sampling: evaluationSampling
    .optional()
    .describe(
      'What evaluations sample otherwise than training, of every agent. Where it is not given, agents are ' +
        'evaluated as they train.',
    ),
});

/** The member of each union that is taken when a recipe names none. */
export const defaultChoices = {
  advantage: { type: DEFAULT_ESTIMATOR },
  loss: { type: 'ppo-clip' },
  backend: { type: 'embedded' },
} as const;

/** File names are made of policy names. */
const policyName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]*$/);

function everyKey<S extends z.ZodType>(keys: readonly string[], schema: S) {
  return z.strictObject(Object.fromEntries(keys.map((key) => [key, schema] as const)) as Record<string, S>);
}

/** `assign` in words: one policy for each agent, named like it, or one named 'shared' for all. */
export const assignmentWord = z.enum(['separate', 'shared']);

/**
 * `assign` spelled out: for every agent the name of its policy, or what is frozen, as the entry that stands there
 * looks.
 */
export function assignmentMap(agents: readonly string[], assign: unknown) {
  const entries = agents.map((agent) => [
    agent,
    isObject(assign) && isObject(assign[agent]) ? frozenSchema : policyName,
  ]);
  return z.strictObject(Object.fromEntries(entries) as Record<string, typeof policyName | typeof frozenSchema>);
}

/** The plain part of a recipe for a team with these agents and, after this assignment, these policies. */
export function settingsSchema(agents: readonly string[], policies: readonly string[], assign: unknown) {
  return z.strictObject({
    name: z
      .string()
      .min(1)
      .describe("The recipe's name, which names the run's directory. By default it is the file's name."),
    seed: z
      .int()
      .min(0)
      .default(1)
      .describe('The seed of sampling and reinforcement. `--seed` sets it; the warm start has a seed of its own.'),
    assign: assignmentMap(agents, assign).describe(
      'Who speaks for each agent: `separate` gives each agent a policy of its name, `shared` gives all one ' +
        'policy named `shared`, and a map gives each agent the name of a policy or a frozen model.',
    ),
    policies: everyKey(policies, policySchema).describe('Settings of each policy, by its name.'),
    agents: everyKey(agents, agentSchema).describe('Settings of each agent, by its name.'),
    advantage: estimatorSchema
      .prefault(defaultChoices.advantage)
      .describe('The estimator that makes advantages of rewards.'),
    loss: lossSchema.prefault(defaultChoices.loss).describe('The loss that makes a gradient of advantages.'),
    warmStart: warmStartSchema
      .optional()
      .describe(
        "Supervised training on the task source's demonstrations before reinforcement. There is none by default.",
      ),
    training: trainingSchema.prefault({}).describe('The reinforcement itself.'),
    evaluation: evaluationSchema.prefault({}).describe('Evaluations on held-out tasks.'),
    gateway: gatewaySchema
      .optional()
      .describe('The agents over HTTP, for `play({ gateway })` and the programs that it starts; by default none.'),
    rollout: rolloutSchema.optional().describe("How episodes are played; by default in the program's own thread."),
    backend: backendSchema.prefault(defaultChoices.backend).describe('What holds the models and computes.'),
    sampler: samplerSchema
      .optional()
      .describe(
        'A server of vLLM or SGLang that samples the policies, while `backend` trains them; by default the backend ' +
          'samples too.',
      ),
    /** Written once for all policies; resolving moves it into each of them. */
    model: z.undefined().optional(),
  });
}

export type RecipeSettings = Omit<z.output<ReturnType<typeof settingsSchema>>, 'model'>;
