/**
 * The named choices that several estimators share. This file alone has their ranges and defaults.
 */
import { z } from 'zod';

export const discount = z.number().min(0).max(1);

const singletonTexts = [
  'The statistics that a group of one is compared with. `zero`: none, its advantage is 0',
  "`raw`: mean 0 and standard deviation 1, as in the paper's code",
  "`batch`: the statistics of the whole step (only the agent's turns if the group is an agent's)",
];

/**
 * The choices of each estimator that compares within a group. The default of `singleton` ended 49 points above `zero`,
 * the default before, in groups of two, whatever the zero of the rewards (docs/findings.md, small-groups).
 */
export const groupChoices = {
  singleton: z
    .enum(['zero', 'raw', 'batch', 'ema'])
    .default('batch')
    .describe(
      [...singletonTexts, '`ema`: running statistics of the earlier steps; each step keeps 0.9 of them.'].join('; '),
    ),
};

/** The same for an estimator without a state. */
export const oneStepChoices = {
  singleton: z.enum(['zero', 'raw', 'batch']).default('batch').describe(singletonTexts.join('; ').concat('.')),
};

export const sharingChoices = {
  shareStatistics: z
    .array(z.array(z.string().min(1)).readonly())
    .readonly()
    .default([])
    .refine((groups) => groups.every(({ length }) => length > 1), 'expected at least two agents in a group')
    .refine((groups) => new Set(groups.flat()).size === groups.flat().length, 'an agent is in two groups')
    .describe(
      'Groups of agents that count as one agent in comparisons, such as specialists that are each called once ' +
        "in a while: `[['camera', 'phone'], ['router', 'watch']]`. None share by default.",
    ),
};

export const divisorChoices = {
  epsilon: z.number().min(0).default(1e-6).describe('A number that is added to the standard deviation that divides.'),
  minimumSpread: z
    .number()
    .min(0)
    .default(1e-6)
    .describe(
      'A group whose standard deviation is below this gets advantage 0. 0 reproduces the original code exactly. Then ' +
        'an estimator with mean and spread of different scores (such as drmas-std) can make an advantage of -1e5 of a ' +
        'penalty of 0.1.',
    ),
};

export const spreadChoices = { ...groupChoices, ...divisorChoices };

export const scoreChoices = {
  episodeScore: z
    .enum(['mean', 'outcome+penalties', 'outcome', 'first'])
    .default('mean')
    .describe(
      "The score of an episode of many turns: the `mean` of its turns' rewards (the paper's code for " +
        "GRPO), the team's reward plus the own rewards of its turns minus their penalties (`outcome+penalties`), the " +
        "team's reward alone (`outcome`), or the reward of its `first` row in input order (the paper's code for RLOO " +
        'and others).',
    ),
};

/** The choice of estimators that can use the statistics of one agent's turns instead of the whole task's. */
export const agentChoice = {
  byAgent: z
    .boolean()
    .default(false)
    .describe('Whether statistics use the turns of one agent instead of the whole task.'),
};

/**
 * The choices for measuring scores against groups, of any estimator. A choice that the estimator lacks has its default.
 */
export const settingsSchema = z.object({ ...spreadChoices, ...scoreChoices, ...sharingChoices });

/** The choices of an estimator, by name. */
export type Settings = Readonly<z.output<typeof settingsSchema>>;

export type EpisodeScore = Settings['episodeScore'];
export type Singleton = Settings['singleton'];
