/** The sections of a recipe: every key, its range and its default stand here and nowhere else. */
import { z } from 'zod';
import { DEFAULT_ESTIMATOR, estimatorSchema } from '../advantage/estimators/index.js';
import { backendSchema } from '../backends/registry.js';
import { lossSchema } from '../loss/loss-spec.js';
import { completeModel } from '../model/model-spec.js';
import { filterSchema, modelSchema } from './choices.js';
import { frozenSchema } from './frozen.js';
import { criticSchema, defaultOptimizer, klSchema, optimizerSchema, scheduleSchema } from './learning.js';
import { isPlain } from './overrides.js';

const nonNegative = z.number().min(0);
const positive = z.number().gt(0);
const beta = z.number().min(0).lt(1);
const count = z.int().min(1);

const agentSchema = z.strictObject({
  sampling: z.strictObject({
    /** 0 takes the most probable token. */
    temperature: nonNegative,
    topP: positive.max(1),
    /** 0 keeps all. */
    topK: z.int().min(0),
    maxTokens: count,
  }),
  /** Subtracted from the reward of a turn whose output is invalid. */
  invalidPenalty: nonNegative,
  /** The advantages of the agent's turns are multiplied by it; at 0 they teach nothing. */
  rewardWeight: nonNegative.default(1),
});

const policySchema = z.strictObject({
  model: modelSchema.transform(completeModel),
  optimizer: optimizerSchema.prefault({ type: defaultOptimizer }),
  /** Updates over which the learning rate rises: a fresh AdamW moves every weight by the whole rate in its first steps. */
  warmupSteps: z.int().min(0).default(5),
  /** What becomes of the learning rate after that. */
  schedule: scheduleSchema.prefault({ type: 'constant' }),
  /** What keeps the policy near a reference; nothing where it is not given. */
  kl: klSchema.optional(),
  /** How the policy's critic learns; there where the estimator uses one. */
  critic: criticSchema.optional(),
  /** Gradients with a larger norm are scaled down to this one; 0 switches clipping off. */
  clipNorm: nonNegative.default(1),
  /** Passes over each step's samples. */
  epochs: count.default(1),
  /** Updates a pass. */
  miniBatches: count.default(1),
  /** Times the policy's entropy at each token, it is taken off the loss: a bonus for staying undecided. */
  entropyCoefficient: nonNegative.default(0),
  /** The recipe's where not given; one of its own replaces it whole. */
  loss: lossSchema.optional(),
});

const warmStartSchema = z.strictObject({
  /** At most this many steps. */
  steps: count.default(2000),
  /** Traces a step. */
  batch: count.default(64),
  learningRate: positive.default(8e-3),
  warmupSteps: z.int().min(0).default(20),
  /** The cosine schedule ends at this fraction of `learningRate`. */
  finalLearningRate: z.number().min(0).max(1).default(0.1),
  weightDecay: nonNegative.default(0.01),
  beta1: beta.default(0.9),
  beta2: beta.default(0.95),
  epsilon: positive.default(1e-8),
  clipNorm: nonNegative.default(1),
  /** Stop when the mean loss of the last 50 steps is at or below this. */
  lossTarget: positive.optional(),
  /** Of first weights and traces; `--seed` does not touch it. */
  seed: z.int().min(0).default(1),
  /** One base copied into every policy, or one warm start for each policy on its own agents' traces. */
  share: z.enum(['base', 'policy']).default('base'),
});

const trainingSchema = z.strictObject({
  steps: z.int().min(0).default(60),
  tasksPerStep: count.default(16),
  /** Episodes a task (G). */
  groupSize: count.default(8),
  /** Which groups are learnt from; all of them when not given. */
  filter: filterSchema.optional(),
  /** What becomes of an episode that failed: left out, or kept with reward 0. */
  failedEpisodes: z.enum(['exclude', 'zero']).default('exclude'),
  /** Calls of agents in one episode. */
  maxTurns: count.default(16),
  episodeTimeoutMs: count.default(600_000),
  checkpointEvery: count.default(20),
  /** Sampler and trainer may differ by so much on average, in log-probs of the sampled tokens, before a warning is written. */
  logprobGap: positive.default(0.05),
  /** Write the episodes of training steps to disk. */
  keepEpisodes: z.boolean().default(true),
  /** Steps from one measurement of each agent's inflation to the next; 0 measures none. One costs a pass for each of up to 32 turns. */
  measureInflation: z.int().min(0).default(0),
  /** A gradient norm above `factor` times the median of the last `window` steps is a spike; `action` answers it. */
  spike: z
    .strictObject({
      factor: z.number().gt(1).default(3),
      window: z.int().min(2).default(20),
      action: z.enum(['clip', 'skip', 'stop']).default('clip'),
    })
    .prefault({}),
});

const fieldName = z.string().min(1);

const evaluationSchema = z.strictObject({
  /** Steps between evaluations; the first and the last step are always evaluated. */
  every: count.default(20),
  /** Held-out tasks. */
  tasks: count.default(256),
  /** Episodes a task (k of avg@k). */
  samples: count.default(4),
  /** Episodes a task in the evaluations between the first and the last; `samples` when not given. */
  samplesDuring: count.optional(),
  /** Confidence level of the intervals. */
  level: z.number().gt(0).lt(1).default(0.95),
  /** Fields of tasks (their metadata, or their data) by which the scores are also divided. */
  by: z
    .union([fieldName.transform((field) => [field]), z.array(fieldName).min(1).readonly()], {
      error: 'expected the name of a field, or a list of names',
    })
    .optional(),
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

/** `assign` spelled out: for every agent the name of its policy, or what is frozen, as the entry that stands there looks. */
export function assignmentMap(agents: readonly string[], assign: unknown) {
  const entries = agents.map((agent) => [agent, isPlain(assign) && isPlain(assign[agent]) ? frozenSchema : policyName]);
  return z.strictObject(Object.fromEntries(entries) as Record<string, typeof policyName | typeof frozenSchema>);
}

/** The plain part of a recipe for a team with these agents and, after this assignment, these policies. */
export function settingsSchema(agents: readonly string[], policies: readonly string[], assign: unknown) {
  return z.strictObject({
    name: z.string().min(1),
    /** Of sampling and reinforcement. */
    seed: z.int().min(0).default(1),
    assign: assignmentMap(agents, assign),
    policies: everyKey(policies, policySchema),
    agents: everyKey(agents, agentSchema),
    advantage: estimatorSchema.prefault(defaultChoices.advantage),
    loss: lossSchema.prefault(defaultChoices.loss),
    warmStart: warmStartSchema.optional(),
    training: trainingSchema.prefault({}),
    evaluation: evaluationSchema.prefault({}),
    backend: backendSchema.prefault(defaultChoices.backend),
    /** Written once for all policies; resolving moves it into each of them. */
    model: z.undefined().optional(),
  });
}

export type RecipeSettings = Omit<z.output<ReturnType<typeof settingsSchema>>, 'model'>;

/** What a user may leave out, they may: the same sections before defaults are filled in. */
export type PolicyInput = Partial<z.input<typeof policySchema>>;
export type AgentInput = {
  readonly sampling?: Partial<z.input<typeof agentSchema>['sampling']>;
  readonly invalidPenalty?: number;
  readonly rewardWeight?: number;
};
export type EstimatorInput = z.input<typeof estimatorSchema>;
export type LossInput = z.input<typeof lossSchema>;
export type WarmStartInput = z.input<typeof warmStartSchema>;
export type TrainingInput = z.input<typeof trainingSchema>;
export type EvaluationInput = z.input<typeof evaluationSchema>;
export type BackendInput = z.input<typeof backendSchema>;
