/** The named choices that several estimators share: each with its range and its default, which stand here and nowhere else. */
import { z } from 'zod';

/** A discount of later rewards. */
export const discount = z.number().min(0).max(1);

/** The choices of every estimator that compares within a group. */
export const groupChoices = {
  /**
   * What a group of one gets: nothing; mean 0 where the mean's group has one member and spread 1 where the spread's has (what
   * the paper's code does); or the statistics of the whole batch (the agent's, where the group is an agent's).
   */
  singleton: z.enum(['zero', 'raw', 'batch']).default('zero'),
};

/** The choices of every estimator that divides by a spread. */
export const spreadChoices = {
  ...groupChoices,
  /** Added to the standard deviation. */
  epsilon: z.number().min(0).default(1e-6),
  /**
   * A group whose standard deviation is below it gets advantage 0. 0 reproduces the original code to the letter, where a
   * penalty of 0.1 in a group without any other difference becomes an advantage of -1e5.
   */
  minimumSpread: z.number().min(0).default(1e-6),
};

/** The choice of every estimator that needs one score an episode. */
export const scoreChoices = {
  /**
   * How an episode of many turns becomes one score: the mean of its turns' rewards (the paper's code for GRPO); its reward
   * minus the penalties of all of its turns; its reward alone; or the reward of its first row in input order (the paper's
   * code for RLOO and others).
   */
  episodeScore: z.enum(['mean', 'outcome+penalties', 'outcome', 'first']).default('mean'),
};

/** The choice of estimators that can take the statistics of one agent's turns instead of the whole task's. */
export const agentChoice = {
  /** Statistics over the turns of one agent instead of the whole task. */
  byAgent: z.boolean().default(false),
};

/** The choices by which scores are measured against groups, of any estimator: what it does not have has its default. */
export const settingsSchema = z.object({ ...spreadChoices, ...scoreChoices });

export type Settings = Readonly<z.output<typeof settingsSchema>>;

export type EpisodeScore = Settings['episodeScore'];
export type Singleton = Settings['singleton'];
