/** The settings of reinforcement. */
import { z } from 'zod';
import { filterSchema } from '../choices.js';

const nonNegative = z.number().min(0);
const positive = z.number().gt(0);
const count = z.int().min(1);

export const trainingSchema = z.strictObject({
  steps: z.int().min(0).default(60).describe('Reinforcement steps.'),
  tasksPerStep: count.default(16).describe('Tasks in one step.'),
  groupSize: count.default(8).describe('Episodes of each task (G).'),
  filter: filterSchema
    .optional()
    .describe('Which groups are learnt from; all of them where it is not given. It wants a `groupSize` of at least 2.'),
  curriculum: z
    .strictObject({
      by: z
        .string()
        .min(1)
        .describe(
          'The field of tasks, in their metadata or their data, whose values are the levels; `task` makes each task a ' +
            'level of its own, for sources that end.',
        ),
      target: z
        .number()
        .min(0)
        .max(1)
        .default(0.5)
        .describe(
          'The success at which a task teaches most: the nearer its predicted success, the likelier it is played.',
        ),
      decay: z
        .number()
        .min(0)
        .lt(1)
        .default(0.8)
        .describe("The share of a level's predicted success that is kept when the level was played again."),
      candidates: count
        .default(4)
        .describe('Tasks that are looked at for each one that is played. With 1 those are played that come anyway.'),
      groupSizes: z
        .strictObject({
          least: z.int().min(2).default(2).describe('The fewest episodes of a task.'),
        })
        .optional()
        .describe(
          'Shares the episodes of a step, `tasksPerStep` times `groupSize`, out among its tasks: the nearer the ' +
            'predicted success of a task to the target, the more it has. By default each has `groupSize`.',
        ),
    })
    .optional()
    .describe(
      'Which tasks are played, by the predicted success of each: the moving average of its level. By default all are ' +
        'as likely as the source has them.',
    ),
  partWeights: z
    .record(z.string(), nonNegative)
    .optional()
    .describe(
      "What named parts of the team's reward count in its sum; a part that is not named counts once. Parts are " +
        'reported as they are, and success stays what it is.',
    ),
  durationWeights: z
    .strictObject({
      most: z.number().gt(1).default(10).describe('The largest weight of a turn.'),
    })
    .optional()
    .describe(
      'Weighs the advantages of each turn by how long what it set off took, as the team says it, over the mean of its ' +
        "agent's turns in the step. A turn whose duration nobody says counts once. By default all do.",
    ),
  failedEpisodes: z
    .enum(['exclude', 'zero'])
    .default('exclude')
    .describe('What becomes of an episode that failed: it is left out, or kept with reward 0.'),
  maxTurns: count.default(16).describe('The most calls of agents in one episode. One more fails the episode.'),
  episodeTimeoutMs: count
    .default(600_000)
    .describe('An episode that is not over after so many milliseconds has failed.'),
  concurrency: count.default(256).describe('The most episodes at once. Results do not depend on it; memory does.'),
  maxOutcomeBytes: count
    .default(1_000_000)
    .describe(
      'The most characters, about, of what `play` returns and of one value that it logs, as JSON. A larger one fails ' +
        'the episode.',
    ),
  checkpointEvery: count.default(20).describe('Steps between checkpoints. The last step always has one.'),
  keepCheckpoints: count
    .optional()
    .describe(
      'How many of the last checkpoints stay on disk; all of them where it is not given. With 1 there is none to fall ' +
        'back to when the last one is damaged.',
    ),
  logprobGap: positive
    .default(0.05)
    .describe(
      'A warning is written when the log-probs of sampler and trainer differ by more than this on average over a ' +
        "step's sampled tokens.",
    ),
  keepEpisodes: z
    .union([z.boolean(), count])
    .default(true)
    .describe(
      'Whether the episodes of training steps are written to disk; a number keeps those of every so many steps.',
    ),
  measureInflation: z
    .int()
    .min(0)
    .default(0)
    .describe(
      "Steps from one measurement of each agent's inflation to the next; 0 measures none. A measurement costs a " +
        'pass for each of up to 32 turns of an agent.',
    ),
  spike: z
    .strictObject({
      factor: z.number().gt(1).default(3).describe('A gradient norm above this times the running median is a spike.'),
      floor: nonNegative
        .default(1)
        .describe(
          "No norm below this times the policy's `clipNorm` is a spike (times 1 where clipping is off), however small " +
            'the median: that of an agent whose groups are nearly all equal is next to 0.',
        ),
      window: z.int().min(2).default(20).describe('Steps whose norms the running median is taken of.'),
      action: z
        .enum(['clip', 'skip', 'stop'])
        .default('clip')
        .describe('What answers a spike: the gradient is clipped as always, the update is skipped, or the run stops.'),
    })
    .prefault({})
    .describe('What counts as a spike of the gradient norm, and what is done about one.'),
});
