/** The settings of evaluations. */
import { z } from 'zod';
import { evaluationSampling } from './agent-section.js';

const count = z.int().min(1);

const fieldName = z.string().min(1);

export const evaluationSchema = z.strictObject({
  every: count.default(20).describe('Steps between evaluations. Step 0 and the last step are always evaluated.'),
  tasks: count.default(256).describe('Held-out tasks in one evaluation, of each benchmark.'),
  samples: count.default(4).describe('Episodes of each task: the k of avg@k.'),
  samplesDuring: count
    .optional()
    .describe('Episodes of each task in the evaluations between the first and the last. Default: `samples`.'),
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
