/** The setting `training.filter`, which chooses the groups of an update. */
import { z } from 'zod';
import type { GroupFilter } from './filter.js';

const filterScore = z
  .enum(['outcome', 'success', 'outcome+penalties', 'mean'])
  .default('outcome')
  .describe(
    'The number of an episode that the filter compares: its `success`, which costs of calls and weights of parts do ' +
      'not change, or a score that is explained at `episodeScore`.',
  );

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
        'drmas plays more tasks until it has kept `tasksPerStep` groups. By default the step gets smaller ' +
          'instead.',
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
      .describe('The fraction of the groups of a step to keep. drmas keeps the groups with the largest variance.'),
  }),
]) satisfies z.ZodType<GroupFilter>;
