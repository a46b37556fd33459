/** The settings of a policy: its model, and how it learns. */

import { ENGINE_DEVICES, PRECISIONS, PROJECTIONS } from '@drmas/engine/contract';
import { completeModel, defaultOptimizer, modelSchema, optimizerSchema } from '@drmas/engine/model';
import { z } from 'zod';
import { criticSchema, klSchema, priceSchema, scheduleSchema } from '../learning.js';
import type { Sections } from '../lists.js';

const nonNegative = z.number().min(0);
const count = z.int().min(1);

const agentAdaptersSchema = z.strictObject({
  rank: count.describe('The columns of A and rows of B.'),
  alpha: z.number().gt(0).optional().describe("An adapter's share is scaled by alpha / rank. Default: `rank`."),
  targets: z
    .array(z.enum(PROJECTIONS))
    .min(1)
    .readonly()
    .default(PROJECTIONS)
    .describe('The projections that are adapted. Default: all of them.'),
  trunkRate: nonNegative
    .default(1)
    .describe(
      "The trunk's learning rate as a multiple of the policy's. 0 keeps the trunk as it is after the warm start, and " +
        'only the adapters learn.',
    ),
});

export const policySchema = ({ loss, backend, sampler }: Pick<Sections, 'loss' | 'backend' | 'sampler'>) =>
  z.strictObject({
    model: modelSchema.transform(completeModel).describe("The policy's model. Default: the `model` of the recipe."),
    precision: z
      .enum(PRECISIONS)
      .optional()
      .describe(
        'The numbers that matrix products multiply, in sampling and in training. Default: `float32`, but `bfloat16` on ' +
          'a card (`backend.device`). `bfloat16` rounds both ' +
          'operands, and is faster on processors with AVX512-BF16. `int8` is for an adapter on a GGUF file in Q8_0, ' +
          'Q4_0 or Q4_1, on the processor: activations are rounded to 8 bits, gradients to bfloat16, before they ' +
          'meet the base. It is faster on processors with AVX512-VNNI. Sums, trained weights and all other numbers ' +
          'stay in float32.',
      ),
    agentAdapters: agentAdaptersSchema
      .optional()
      .describe(
        "An adapter (LoRA) for each agent of the policy. The policy's own weights are the trunk: all its agents train " +
          'the trunk together, and each agent trains its own adapter. `model` must be a whole model. By default there ' +
          'are no such adapters.',
      ),
    optimizer: optimizerSchema
      .prefault({ type: defaultOptimizer })
      .describe('The optimiser. If you resume a run with another type, the new optimiser starts without state.'),
    warmupSteps: z
      .int()
      .min(0)
      .default(5)
      .describe("The policy's first updates, over which the learning rate rises to its full value."),
    schedule: scheduleSchema
      .prefault({ type: 'constant' })
      .describe(
        "The learning-rate schedule after the warm-up. It follows the run's steps, also those in which no agent of the " +
          'policy is called.',
      ),
    kl: klSchema.optional().describe('A KL penalty that keeps the policy near a reference. There is none by default.'),
    critic: criticSchema
      .optional()
      .describe(
        "The settings of the policy's critic. By default a policy has a critic if the estimator uses values " +
          '(`gae`).',
      ),
    clipNorm: nonNegative
      .default(1)
      .describe('Gradients with a larger norm are scaled down to this norm. 0 switches clipping off.'),
    price: priceSchema,
    epochs: count.default(1).describe("Passes over each step's samples."),
    miniBatches: count.default(1).describe('Updates in one pass. Each update takes an equal share of the samples.'),
    entropyCoefficient: nonNegative
      .default(0)
      .describe(
        "The coefficient of the entropy bonus. The loss of each token is lowered by this times the policy's " +
          'entropy there.',
      ),
    entropySchedule: scheduleSchema
      .optional()
      .describe('The schedule of the entropy bonus, for a policy that explores less and less. By default none.'),
    loss: loss
      .optional()
      .describe('A loss for this policy alone. It replaces the whole `loss` of the recipe and has the same keys.'),
    backend: backend
      .optional()
      .describe(
        'A backend for this policy alone. It replaces the whole `backend` of the recipe and has the same ' +
          'keys. Policies with equal settings share one backend.',
      ),
    device: z
      .enum(ENGINE_DEVICES)
      .optional()
      .describe(
        "The device of this policy and its reference. It replaces the `device` of the policy's backend, which is the " +
          'embedded one. Each device has an engine of its own, and the engines work side by side. `--device` sets the ' +
          'device of the policies without this setting.',
      ),
    sampler: sampler
      .optional()
      .describe(
        'A sampler for this policy alone. It replaces the whole `sampler` of the recipe and has the same ' + 'keys.',
      ),
  });
