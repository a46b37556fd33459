/** The settings of reinforcement. */
import { z } from 'zod';
import { filterSchema } from '../../advantage/filter-schema.js';

const nonNegative = z.number().min(0);
const positive = z.number().gt(0);
const count = z.int().min(1);

/** The success at which a task teaches most, and the decay of predictions, unless a curriculum says otherwise. */
export const CURRICULUM_DEFAULTS = { target: 0.5, decay: 0.8 };

export const trainingSchema = z.strictObject({
  steps: z.int().min(0).default(60).describe('Reinforcement steps.'),
  tasksPerStep: count.default(16).describe('Tasks in one step.'),
  groupSize: count.default(8).describe('Episodes of each task (G).'),
  filter: filterSchema
    .optional()
    .describe('Selects the groups to learn from. Default: all groups. A filter needs a `groupSize` of at least 2.'),
  curriculum: z
    .strictObject({
      by: z
        .string()
        .min(1)
        .describe(
          'The field of tasks, in their metadata or their data, whose values are the levels. `task` makes each ' +
            'task a level; the source must then be finite.',
        ),
      target: z
        .number()
        .min(0)
        .max(1)
        .default(CURRICULUM_DEFAULTS.target)
        .describe(
          'The success at which a task teaches most. A task is more likely to be played if its predicted ' +
            'success is closer to this.',
        ),
      decay: z
        .number()
        .min(0)
        .lt(1)
        .default(CURRICULUM_DEFAULTS.decay)
        .describe(
          "The decay of a level's predicted success: the share of the old value that remains after the level " +
            'is played again.',
        ),
      candidates: count
        .default(4)
        .describe('The number of tasks to choose from, for each task that is played. With 1 there is no choice.'),
      groupSizes: z
        .strictObject({
          least: z.int().min(2).default(2).describe('The fewest episodes of a task.'),
        })
        .optional()
        .describe(
          'Divides the episodes of a step (`tasksPerStep` times `groupSize`) among its tasks: a task gets more ' +
            'episodes if its predicted success is closer to the target. By default each task gets `groupSize`.',
        ),
    })
    .optional()
    .describe(
      'Chooses tasks by their predicted success, which is the moving average of their level. By default ' +
        'the task source decides.',
    ),
  partWeights: z
    .record(z.string(), nonNegative)
    .optional()
    .describe(
      "The weights of named parts of the team's reward in its sum. A part without a weight has the weight " +
        '1. Events report the parts without weights, and the success of an episode does not change.',
    ),
  failedEpisodes: z
    .enum(['exclude', 'zero'])
    .default('exclude')
    .describe(
      'The treatment of failed episodes: `exclude` leaves them out, `zero` keeps them with reward 0 minus the cost of ' +
        "their calls. Failures that the agents' texts cause (`invalid-output`, `overlong`, `too-many-turns`) are always " +
        'kept.',
    ),
  rewardRetries: z
    .int()
    .min(0)
    .max(20)
    .default(2)
    .describe(
      'How often `reward`, `success` and `metrics`, or `rewardGroup`, are called again if one of them throws. After a ' +
        'network error drmas waits half a second first, then twice as long each time.',
    ),
  maxTurns: count
    .default(16)
    .describe(
      "The most calls of agents by a team's `play` in one episode. One more fails the episode, unless it comes over the " +
        'gateway. Calls of judges in the reward do not count.',
    ),
  episodeTimeoutMs: count.default(600_000).describe('An episode fails if it is not over after this many milliseconds.'),
  concurrency: count
    .default(256)
    .describe(
      'The most episodes at the same time. On the embedded engine it changes the memory and the time that a run needs, not the results.',
    ),
  maxOutcomeBytes: count
    .default(1_000_000)
    .describe(
      'The approximate limit, in characters of JSON, for the value that `play` returns, for each value that it logs, ' +
        'and for the list that `rewardGroup` returns. A larger value fails the episode.',
    ),
  checkpointEvery: count.default(20).describe('Steps between checkpoints. The last step always has one.'),
  keepCheckpoints: count
    .optional()
    .describe(
      'The number of checkpoints that stay on disk, the latest ones. Default: all. With 1 there is no ' +
        'older checkpoint if the last one is damaged.',
    ),
  keepFirst: z
    .boolean()
    .default(false)
    .describe(
      'Whether the run writes a checkpoint before the first step and keeps it, whatever `keepCheckpoints` is: the ' +
        'agents as they were after the warm start. A run of 0 steps always writes it.',
    ),
  keepBest: z
    .boolean()
    .optional()
    .describe(
      'Whether the run keeps the checkpoint of its best evaluation, whatever `keepCheckpoints` is. The first ' +
        'evaluation counts too. `--checkpoint best` names the checkpoint. Default: no.',
    ),
  bestBy: z
    .enum(['averageAtK', 'passAtK', 'majorityAtK', 'reward'])
    .optional()
    .describe('The score of evaluations that `keepBest` and `stopWhen` compare. Default: `averageAtK`.'),
  stopWhen: z
    .strictObject({
      score: z.number().optional().describe('An evaluation has at least this score.'),
      patience: count
        .optional()
        .describe('This many evaluations in a row were no improvement. An improvement exceeds the last one.'),
      minimumGain: nonNegative
        .optional()
        .describe('For `patience`, an improvement exceeds the last one by more than this. Default: 0.'),
      rewardFloor: z
        .strictObject({
          below: z.number().describe('The floor: a mean reward.'),
          steps: count.default(10).describe('The number of steps in a row.'),
        })
        .optional()
        .describe("The mean reward of a step's episodes is below a floor in several steps in a row."),
      tokens: count
        .optional()
        .describe('The agents have read and written this many tokens, in steps and evaluations together.'),
      cost: positive
        .optional()
        .describe(
          'Steps and evaluations together have cost this much, in the currency of the prices of the policies and ' +
            'endpoints.',
        ),
      minutes: positive
        .optional()
        .describe(
          'Reinforcement has taken this many minutes of wall-clock time. The warm start and the time between an ' +
            'interruption and the resumption do not count.',
        ),
    })
    .optional()
    .describe(
      'Ends the run before its last step if one of these rules holds after a step or an evaluation. The run still ' +
        'gets its last evaluation and checkpoint, so it may exceed a budget by a step and an evaluation.',
    ),
  logprobGap: positive
    .default(0.05)
    .describe(
      "drmas warns if the log-probs of sampler and trainer differ by more than this, on average over an agent's " +
        'sampled tokens of a step. Steps whose rollout began ahead (`rollout.staleness`) have no such warning.',
    ),
  keepEpisodes: z
    .union([z.boolean(), count])
    .default(true)
    .describe(
      'Whether drmas writes the episodes of training steps to disk. With a number N it writes every N-th ' + 'step.',
    ),
  measureInflation: z
    .int()
    .min(0)
    .default(0)
    .describe(
      "Steps between measurements of each agent's inflation. 0 switches them off. A measurement costs a forward and " +
        'a backward pass for each of up to 32 turns of an agent.',
    ),
  spike: z
    .strictObject({
      factor: z
        .number()
        .gt(1)
        .default(3)
        .describe('A gradient norm is a spike if it is above this times the running median.'),
      floor: nonNegative
        .default(1)
        .describe(
          "A norm below this times the policy's `clipNorm` (1 if clipping is off) is not a spike, even if the " +
            'median is small. The median is close to 0 for an agent with few mixed groups.',
        ),
      window: z.int().min(2).default(20).describe('The number of steps in the running median.'),
      action: z
        .enum(['clip', 'skip', 'stop'])
        .default('clip')
        .describe(
          'The response to a spike: `clip` clips the gradient as usual, `skip` leaves the update out, `stop` ' +
            'ends the run.',
        ),
    })
    .prefault({})
    .describe('The definition of a spike of the gradient norm, and the response to it.'),
});
