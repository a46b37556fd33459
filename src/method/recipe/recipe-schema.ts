/** The root of a recipe's schema: it joins the sections that their owners export. */

import { isObject } from '@drmas/engine/errors';
import { z } from 'zod';
import { gatewaySchema } from '../../gateway/settings.js';
import { rolloutSchema } from '../../teams/rollout.js';
import { DEFAULT_ESTIMATOR } from '../advantage/estimators/index.js';
import { frozenSchema } from './frozen.js';
import { type Lists, sectionsOf } from './lists.js';
import { agentSchema, evaluationSampling } from './sections/agent-section.js';
import { policySchema } from './sections/policy-section.js';
import { trainingSchema } from './sections/training-section.js';

// The settings of evaluations.

const count = z.int().min(1);

const fieldName = z.string().min(1);

const evaluationSchema = z.strictObject({
  every: count.default(20).describe('Steps between evaluations. Step 0 and the last step are always evaluated.'),
  tasks: count.default(256).describe('Held-out tasks in one evaluation, of each benchmark.'),
  samples: count.default(4).describe('Episodes of each task: the k of avg@k.'),
  samplesDuring: count
    .optional()
    .describe(
      'Episodes of each task in the evaluations between the first and the last. An evaluation that ends the run by ' +
        '`stopWhen` is the last one, and has as many. Default: `samples`.',
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
      'Sampling settings of evaluations, for all agents. They override the `sampling` of each agent. By ' +
        'default evaluations sample as training does.',
    ),
});

// The settings of the warm start.

const nonNegative = z.number().min(0);
const positive = z.number().gt(0);
const beta = z.number().min(0).lt(1);

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
    .describe('The seed of the first weights and of the demonstrations. `--seed` of `train` does not change it.'),
  share: z
    .enum(['base', 'policy'])
    .default('base')
    .describe(
      '`base` trains one model and copies it into all policies, which must have the same model. `policy` ' +
        'trains each policy on the demonstrations of its own agents, and is the default if all policies are adapters ' +
        'on checkpoints: one adapter that learned all demonstrations would begin each agent with the habits of the others.',
    ),
});

export const defaultChoices = {
  advantage: { type: DEFAULT_ESTIMATOR },
  loss: { type: 'ppo-clip' },
  backend: { type: 'embedded' },
} as const;

/** File names are made of policy names. */
const policyName = z
  .string()
  .max(100)
  .regex(/^[A-Za-z0-9][A-Za-z0-9_-]*$/)
  .refine((name) => !(name in Object.prototype), 'expected another name than those that every object has');

function everyKey<S extends z.ZodType>(keys: readonly string[], schema: S) {
  return z.strictObject(Object.fromEntries(keys.map((key) => [key, schema] as const)) as Record<string, S>);
}

/** `assign` as a word: `separate` (one policy for each agent, named like it) or `shared` (one policy for all). */
export const assignmentWord = z.enum(['separate', 'shared']);

/**
 * `assign` as a map from each agent to the name of its policy, or to a frozen entry.
 */
export function assignmentMap(agents: readonly string[], assign: unknown) {
  const entries = agents.map((agent) => [
    agent,
    isObject(assign) && isObject(assign[agent]) ? frozenSchema : policyName,
  ]);
  return z.strictObject(Object.fromEntries(entries) as Record<string, typeof policyName | typeof frozenSchema>);
}

/**
 * The plain part of a recipe for a team with these agents and limits, and with the policies of this assignment. The
 * lists contain the types that each section can name.
 */
export function settingsSchema(
  lists: Lists,
  agents: readonly string[],
  policies: readonly string[],
  assign: unknown,
  limits: readonly string[] = [],
) {
  const sections = sectionsOf(lists);
  return z.strictObject({
    name: z
      .string()
      .min(1)
      .describe("The name of the recipe and of the run's directory. Default: the name of the recipe's file."),
    seed: z
      .int()
      .min(0)
      .default(1)
      .describe('The seed of sampling and reinforcement. `--seed` sets it. The warm start has its own seed.'),
    assign: assignmentMap(agents, assign).describe(
      'The model of each agent. `separate` gives each agent its own policy, named like the agent. `shared` ' +
        'gives all agents one policy named `shared`. A map gives each agent the name of a policy, or a ' +
        'frozen model.',
    ),
    policies: everyKey(policies, policySchema(sections)).describe('Settings of each policy, by its name.'),
    agents: everyKey(agents, agentSchema).describe('Settings of each agent, by its name.'),
    limits: everyKey(limits, count)
      .partial()
      .optional()
      .describe("Limits of the team's loops, by the names that the team declares. Default: the team's own."),
    advantage: sections.advantage
      .prefault(defaultChoices.advantage)
      .describe('The estimator. It turns rewards into advantages.'),
    loss: sections.loss.prefault(defaultChoices.loss).describe('The policy loss. It turns advantages into a gradient.'),
    warmStart: warmStartSchema
      .optional()
      .describe(
        "Supervised training on the task source's demonstrations before reinforcement. There is none by default.",
      ),
    training: trainingSchema.prefault({}).describe('The reinforcement itself.'),
    evaluation: evaluationSchema.prefault({}).describe('Evaluations on held-out tasks.'),
    gateway: gatewaySchema
      .optional()
      .describe(
        'Offers the agents over HTTP, for `play({ gateway })` and the programs that it starts. By default ' +
          'there is no gateway.',
      ),
    rollout: rolloutSchema
      .optional()
      .describe('The place where episodes are played. Default: the thread of the program.'),
    backend: sections.backend
      .prefault(defaultChoices.backend)
      .describe('The backend, which holds the models: it samples from them and trains them.'),
    sampler: sections.sampler
      .optional()
      .describe(
        'A vLLM or SGLang server that samples from the policies while `backend` trains them. By default the ' +
          'backend samples too.',
      ),
    /** Written once for all policies. Resolving copies it into each of them. */
    model: z.undefined().optional(),
  });
}

/** The settings of a recipe with all defaults filled in, without the model. */
export type RecipeSettings = Omit<z.output<ReturnType<typeof settingsSchema>>, 'model'>;

interface SchemaNode {
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly anyOf?: readonly SchemaNode[];
  readonly oneOf?: readonly SchemaNode[];
}

/**
 * The path of a setting by its last name, settings of single agents and policies left out: the setting of `training`,
 * else the only one of that name. Undefined if there is none, or if several sections have one.
 */
export function settingNamed(name: string, lists: Lists): string | undefined {
  const schema = z.toJSONSchema(settingsSchema(lists, [], [], {}), { io: 'input', unrepresentable: 'any' });
  const paths = new Set(settingPaths(schema as SchemaNode).filter((path) => path.split('.').at(-1) === name));
  const [first, ...others] = paths;
  const ofTraining = `training.${name}`;
  return paths.has(ofTraining) ? ofTraining : others.length === 0 ? first : undefined;
}

function settingPaths({ properties = {}, anyOf = [], oneOf = [] }: SchemaNode): string[] {
  const ownPaths = Object.entries(properties).flatMap(([key, node]) => {
    const below = settingPaths(node);
    return below.length === 0 ? [key] : below.map((path) => `${key}.${path}`);
  });
  return [...ownPaths, ...[...anyOf, ...oneOf].flatMap(settingPaths)];
}
