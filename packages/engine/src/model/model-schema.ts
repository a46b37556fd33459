/** The settings of models: their keys, ranges and descriptions. `model-spec.ts` has their types. */
import { z } from 'zod';
import { PROJECTIONS } from '../contract/architecture.js';
import { modelKinds } from './kinds/index.js';
import type { LoraInput, ModelInput, WholeModelInput } from './model-spec.js';
import { templateProblem } from './tokenizers/named-templates.js';
import { ownTokenizerSpec } from './tokenizers/tokenizer-spec.js';

const count = z.int().min(1);

const wholeModels = [
  z
    .strictObject({
      type: z.literal('tiny-decoder'),
      width: count.describe('The width of the residual stream, a multiple of 2 x `heads`.'),
      layers: count.describe('The number of layers.'),
      heads: count.describe('The number of query heads.'),
      kvHeads: count.optional().describe('The number of key/value heads, which divides `heads`. Default: `heads`.'),
      feedForward: count.describe('The hidden width of the SwiGLU block.'),
      context: z.int().min(2).describe('The longest prompt and response together, in tokens.'),
      ropeBase: z.number().gt(0).optional().describe('The base of the rotary angles. Default: 10000.'),
      embeddingDeviation: z
        .number()
        .gt(0)
        .optional()
        .describe(
          'The standard deviation of the first embedding. Default: width^-1/2. The final norm makes up for it, so first ' +
            'logits have variance 1.',
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
        "A directory, a GGUF file, a model's name in Ollama or LM Studio, or `org/name[@revision]` on the hub. The first " +
          "of these that exists wins. A path that begins with `./` or `../` is relative to the recipe's file; any other " +
          'relative path starts at the working directory.',
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
    variables: z
      .record(
        z.string().regex(/^[A-Za-z_]\w*$/, 'expected the name of a variable'),
        z.union([
          z.boolean(),
          z.number(),
          z.string().regex(/^[^"\\%{}]*$/, 'expected a text without quotes, backslashes, braces and percent signs'),
        ]),
      )
      .optional()
      .describe(
        "Values of the chat template's variables, such as `{ enable_thinking: false }` for Qwen3. Text values have no " +
          'quotes, backslashes, braces and percent signs.',
      ),
  }),
] as const;

const loraModel = z
  .strictObject({
    type: z.literal('lora'),
    base: z
      .discriminatedUnion('type', wholeModels)
      .describe('The whole model, which is not trained.') satisfies z.ZodType<WholeModelInput>,
    rank: count.optional().describe('The columns of A and rows of B. An adapter has this, or `from`.'),
    alpha: z.number().gt(0).optional().describe("The adapter's share is scaled by alpha / rank. Default: `rank`."),
    targets: z
      .array(z.enum(PROJECTIONS))
      .min(1)
      .readonly()
      .optional()
      .describe('The projections that are adapted. Default: all of them.'),
    from: z
      .string()
      .min(1)
      .optional()
      .describe(
        "The directory of a saved adapter in PEFT's layout: from a run's checkpoint, an export or `peft`. The saved " +
          'adapter has its own rank, alpha and targets.',
      ),
  })
  .superRefine(({ from, ...settings }, context) => {
    const fail = (path: string, message: string) => context.addIssue({ code: 'custom', path: [path], message });
    if (from === undefined && settings.rank === undefined)
      fail('rank', 'is required: an integer >= 1; or `from`, the directory of a saved adapter');
    if (from === undefined) return;
    for (const key of ['rank', 'alpha', 'targets'] as const)
      if (settings[key] !== undefined) fail(key, 'comes from the saved adapter in `from`; expected nothing here');
  }) satisfies z.ZodType<LoraInput>;

export const languageModelSchema = z.discriminatedUnion('type', [...wholeModels, loraModel]);

/** A recipe's `model`: every kind of model, told apart by `type`. */
export const modelSchema = z.discriminatedUnion('type', [
  ...wholeModels,
  ...modelKinds.map(({ schema }) => schema),
  loraModel,
]) satisfies z.ZodType<ModelInput>;
