/** Parts of a recipe: filters and models, which are told apart by `type`, and how episodes are played. */
import { z } from 'zod';
import type { GroupFilter } from '../advantage/filter.js';
import { PROJECTIONS } from '../contract/architecture.js';
import type { ModelInput, WholeModelInput } from '../model/model-spec.js';
import { templateProblem } from '../model/tokenizers/named-templates.js';
import { ownTokenizerSpec } from '../model/tokenizers/tokenizer-spec.js';

const count = z.int().min(1);

const filterScore = z
  .enum(['outcome', 'outcome+penalties', 'mean'])
  .default('outcome')
  .describe('The score of an episode that the filter compares, in the words of `episodeScore`.');

export const filterSchema = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('equal-outcomes'),
    score: filterScore,
    refill: z
      .strictObject({
        maxRounds: z.int().min(2).default(4).describe('The most rounds of playing in one step, the first included.'),
      })
      .optional()
      .describe(
        'Further tasks are played until `tasksPerStep` groups are kept. By default a step gets smaller instead.',
      ),
  }),
  z.strictObject({
    type: z.literal('variance'),
    score: filterScore,
    keep: z
      .number()
      .gt(0)
      .lt(1)
      .default(0.5)
      .describe("The fraction of a step's groups that is kept: those whose scores vary most."),
  }),
]) satisfies z.ZodType<GroupFilter>;

const wholeModels = [
  z
    .strictObject({
      type: z.literal('tiny-decoder'),
      width: count.describe('The width of the residual stream, a multiple of 2 x `heads`.'),
      layers: count.describe('The number of layers.'),
      heads: count.describe('The number of query heads.'),
      kvHeads: count
        .optional()
        .describe('The number of key/value heads, which divides `heads`; `heads` where it is not given.'),
      feedForward: count.describe('The hidden width of the SwiGLU block.'),
      context: z.int().min(2).describe('The longest prompt and response together, in tokens.'),
      ropeBase: z.number().gt(0).optional().describe('The base of the rotary angles; 10000 where it is not given.'),
      embeddingDeviation: z
        .number()
        .gt(0)
        .optional()
        .describe(
          'The standard deviation of the first embedding; width^-1/2 where it is not given. The final norm makes up for ' +
            'it, so first logits have variance 1. A larger one lets tokens stand out from what the first layers add, ' +
            'and copying is learnt sooner.',
        ),
      tokenizer: ownTokenizerSpec.describe(
        'The tokenizer: UTF-8 bytes (`bytes`), or a fixed vocabulary of strings (`symbols`).',
      ),
    })
    .superRefine((model, context) => {
      const fail = (path: string, message: string) => context.addIssue({ code: 'custom', path: [path], message });
      if (model.width % (2 * model.heads) !== 0) {
        fail('width', `must be a multiple of 2 x heads (${2 * model.heads}), got ${model.width}`);
      }
      if (model.heads % (model.kvHeads ?? 1) !== 0)
        fail('kvHeads', `must divide heads (${model.heads}), got ${model.kvHeads}`);
    }),
  z.strictObject({
    type: z.literal('checkpoint'),
    path: z
      .string()
      .min(1)
      .describe(
        "A directory, or `org/name[@revision]` on the hub; a directory that exists wins. In a recipe's file, what begins " +
          'with `./` or `../` lies beside that file; any other relative path starts at the working directory.',
      ),
    chatTemplate: z
      .string()
      .min(1)
      .superRefine((text, context) => {
        const message = templateProblem(text);
        if (message !== undefined) context.addIssue({ code: 'custom', message });
      })
      .optional()
      .describe(
        "The chat template, for a base model that has none, or in place of the model's own: the text of a Jinja " +
          'template, or the name of one: `plain` (suits every model), `chatml`, `llama3`.',
      ),
  }),
] as const;

const differentNames = z
  .array(z.string().min(1))
  .readonly()
  .refine((names) => new Set(names).size === names.length, 'expected different names');

export const modelSchema = z.discriminatedUnion('type', [
  ...wholeModels,
  z
    .strictObject({
      type: z.literal('choice-table'),
      choices: differentNames
        .refine((names) => names.length >= 2, 'expected at least two choices')
        .describe('What is chosen among.'),
      features: differentNames
        .refine((names) => names.length >= 1, 'expected at least one feature, or none of this')
        .optional()
        .describe('What may be asked, each with logits of its own; without them there is one row, whatever is asked.'),
      length: count
        .optional()
        .describe('The choices of a response, 1 by default. In longer ones each depends on the one before it.'),
    })
    .superRefine(({ choices, features = [] }, context) => {
      const both = features.find((feature) => choices.includes(feature));
      if (both !== undefined)
        context.addIssue({ code: 'custom', path: ['features'], message: `'${both}' is the name of a choice` });
    }),
  z
    .strictObject({
      type: z.literal('lora'),
      base: z
        .discriminatedUnion('type', wholeModels)
        .describe('The whole model that stays as it is.') satisfies z.ZodType<WholeModelInput>,
      rank: count.optional().describe('The columns of A and rows of B. An adapter has this, or `from`.'),
      alpha: z
        .number()
        .gt(0)
        .optional()
        .describe("The adapter's share is scaled by alpha / rank; `rank` where it is not given."),
      targets: z
        .array(z.enum(PROJECTIONS))
        .min(1)
        .readonly()
        .optional()
        .describe('The projections that are adapted; all of them where it is not given.'),
      from: z
        .string()
        .min(1)
        .optional()
        .describe(
          "The directory of a saved adapter in PEFT's layout: one of a run's checkpoints, an exported one, one of " +
            '`peft`. Rank, alpha and targets are its own.',
        ),
    })
    .superRefine(({ from, ...settings }, context) => {
      const fail = (path: string, message: string) => context.addIssue({ code: 'custom', path: [path], message });
      if (from === undefined && settings.rank === undefined)
        fail('rank', 'is required: an integer >= 1; or `from`, the directory of a saved adapter');
      if (from === undefined) return;
      for (const key of ['rank', 'alpha', 'targets'] as const)
        if (settings[key] !== undefined) fail(key, 'is that of the saved adapter in `from`; expected nothing here');
    }),
]) satisfies z.ZodType<ModelInput>;

/** The recipe's section `rollout`: where and how episodes are played. */
export const rolloutSchema = z.strictObject({
  isolate: z
    .union([z.boolean(), z.int().min(1)])
    .default(false)
    .describe(
      "Whether the team's code runs in threads of its own: 2 of them, or as many as a number says. Code that does not " +
        'return, takes all memory of its thread or ends it fails its own episode, and nothing else.',
    ),
  staleness: z
    .int()
    .min(0)
    .default(0)
    .describe(
      'How many updates may pass between the weights that play a step and those that learn from it: rollouts begin so ' +
        'many steps ahead, so that tools are waited for while others are sampled. With 0 none begins ahead.',
    ),
  type: z
    .enum(['program', 'queue'])
    .default('program')
    .describe(
      'Where episodes are played: `program`, here; `queue`, by workers on any number of machines (`drmas worker`), which ' +
        'a queue in Redis feeds.',
    ),
  url: z
    .url({ protocol: /^rediss?$/ })
    .refine((url) => new URL(url).password === '', 'a password belongs into REDIS_PASSWORD of the environment')
    .optional()
    .describe(
      'The address of Redis, such as `redis://127.0.0.1:6379`. Its password is REDIS_PASSWORD of the environment.',
    ),
  queue: z
    .string()
    .regex(/^[\w-]{1,64}$/, 'expected letters, digits, "_" and "-"')
    .default('drmas')
    .describe('The name of the queue: workers of one name play for one run at a time.'),
  host: z
    .string()
    .min(1)
    .default('127.0.0.1')
    .describe('The address where workers ask this program for tokens. The default is reached from this machine alone.'),
  port: z.int().min(0).max(65_535).default(0).describe('The port where workers ask for tokens; 0 takes a free one.'),
  publicUrl: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe('The URL by which workers reach this program, where that is another than `http://<host>:<port>`.'),
  leaseSeconds: z
    .number()
    .min(1)
    .default(15)
    .describe('Seconds without a sign of life of a worker after which another one plays its episodes again.'),
});
