/**
 * The named choices that several estimators share: each with its range and its default, which stand here and nowhere
 * else.
 */
import { z } from 'zod';

/** A discount of later rewards. */
export const discount = z.number().min(0).max(1);

const singletonTexts = [
  'What a group of one is compared with: `zero` gives it advantage 0',
  "`raw` takes mean 0 and standard deviation 1, as the paper's code does",
  "`batch` takes the statistics of the whole step (the agent's, where the group is an agent's)",
];

/** The choices of every estimator that compares within a group. */
export const groupChoices = {
  singleton: z
    .enum(['zero', 'raw', 'batch', 'ema'])
    .default('zero')
    .describe(
      [...singletonTexts, '`ema` takes running ones of the steps before, of which each step keeps 0.9.'].join('; '),
    ),
};

/** The same for an estimator that keeps nothing from step to step. */
export const oneStepChoices = {
  singleton: z.enum(['zero', 'raw', 'batch']).default('zero').describe(singletonTexts.join('; ').concat('.')),
};

/** The choice of every estimator with statistics of single agents. */
export const sharingChoices = {
  shareStatistics: z
    .array(z.array(z.string().min(1)).readonly())
    .readonly()
    .default([])
    .refine((groups) => groups.every(({ length }) => length > 1), 'expected at least two agents in a group')
    .refine((groups) => new Set(groups.flat()).size === groups.flat().length, 'an agent stands in two groups')
    .describe(
      'Groups of agents that are compared as if they were one agent, such as specialists that are each called once ' +
        "in a while: `[['camera', 'phone'], ['router', 'watch']]`. None share by default.",
    ),
};

/** The choices of every estimator that divides by a spread. */
export const spreadChoices = {
  ...groupChoices,
  epsilon: z.number().min(0).default(1e-6).describe('What is added to the standard deviation that divides.'),
  minimumSpread: z
    .number()
    .min(0)
    .default(1e-6)
    .describe(
      'A group whose standard deviation is below this gets advantage 0. At 0 the original code is reproduced to ' +
        'the letter, where a penalty of 0.1 in a group without any other difference becomes an advantage of -1e5.',
    ),
};

/** The choice of every estimator that needs one score an episode. */
export const scoreChoices = {
  episodeScore: z
    .enum(['mean', 'outcome+penalties', 'outcome', 'first'])
    .default('mean')
    .describe(
      "How an episode of many turns becomes one score: the `mean` of its turns' rewards (the paper's code for " +
        'GRPO), its reward minus the penalties of all of its turns (`outcome+penalties`), its reward alone ' +
        "(`outcome`), or the reward of its `first` row in input order (the paper's code for RLOO and others).",
    ),
};

/** The choice of estimators that can take the statistics of one agent's turns instead of the whole task's. */
export const agentChoice = {
  byAgent: z
    .boolean()
    .default(false)
    .describe('Whether statistics are over the turns of one agent instead of the whole task.'),
};

/** The choices by which scores are measured against groups, of any estimator: what it does not have has its default. */
export const settingsSchema = z.object({ ...spreadChoices, ...scoreChoices, ...sharingChoices });

export type Settings = Readonly<z.output<typeof settingsSchema>>;

export type EpisodeScore = Settings['episodeScore'];
export type Singleton = Settings['singleton'];
