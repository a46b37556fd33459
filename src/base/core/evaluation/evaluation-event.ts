/** The event of an evaluation: the scores on held-out tasks. */
import type { TokenCount } from '../play/token-count.js';

export interface Interval {
  readonly low: number;
  readonly high: number;
}

export interface AgentEvaluation {
  readonly turns: number;
  readonly callsPerEpisode: number;
  readonly invalid: number;
  readonly responseTokens: number;
  /** The tokens of all of its turns. */
  readonly tokens?: TokenCount;
  /** Their cost, if the policy has a price. */
  readonly cost?: number;
  /** The mean over tasks of the agent's reward: its individual reward if the team gives one, else the team's. */
  readonly reward?: number;
  /** The bootstrap interval of `reward`. */
  readonly rewardInterval?: Interval;
  /** The means of the named parts of the agent's reward, if it has any. */
  readonly parts?: Readonly<Record<string, number>>;
}

/**
 * Scores of k samples a task, means over tasks. A sample's score is its success (`successOf`), from 0 to 1. Intervals
 * are bootstrap intervals over tasks.
 */
export interface EvaluationScores {
  readonly tasks: number;
  readonly averageAtK: number;
  readonly passAtK: number;
  readonly majorityAtK: number;
  /** The interval of `averageAtK`, and the level of all intervals. */
  readonly interval: Interval & { readonly level: number };
  /** The interval of `passAtK`. */
  readonly passInterval?: Interval;
  /** The interval of `majorityAtK`. */
  readonly majorityInterval?: Interval;
  /** The unbiased estimates of pass@k from all samples, for k = 1, 2, 4 ... up to their number. */
  readonly passAt?: Readonly<Record<string, number>>;
}

export interface EvaluationEvent extends EvaluationScores {
  readonly type: 'evaluation';
  readonly step: number;
  readonly split: 'train' | 'test';
  readonly samples: number;
  /** Failed episodes, which count as unsolved; absent if none failed. */
  readonly failed?: number;
  /** Episodes whose reward failed. They have no score, and no mean contains them. Absent if there are none. */
  readonly unscored?: number;
  /** All episodes, if some are unscored: `episodes - unscored` of `episodes` have a score. */
  readonly episodes?: number;
  /** The mean over tasks of the team's reward. */
  readonly reward?: number;
  /** The bootstrap interval of `reward`. */
  readonly rewardInterval?: Interval;
  /** The means of the named parts of the team's reward, if it has any. */
  readonly parts?: Readonly<Record<string, number>>;
  /** The means of the team's measures besides its reward, each over the episodes that have it. */
  readonly metrics?: Readonly<Record<string, number>>;
  readonly agents: Readonly<Record<string, AgentEvaluation>>;
  /** The scores of subsets of the tasks: by benchmark if there are several, and by each field of `evaluation.by`. */
  readonly slices?: Readonly<Record<string, Readonly<Record<string, EvaluationScores>>>>;
  /** The means over benchmarks, if there are several. Each benchmark counts once, with any number of tasks. */
  readonly benchmarkMean?: Pick<EvaluationScores, 'averageAtK' | 'passAtK' | 'majorityAtK'>;
  /** The cost of the evaluation, if a policy has a price. */
  readonly cost?: number;
  readonly seconds: number;
}
