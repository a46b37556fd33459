/** The event of an evaluation: the scores on held-out tasks. */

import type { TokenCount } from './play/token-count.js';
import { differ } from './statistics.js';

/** A confidence interval of a mean, in the unit of the mean. */
export interface Interval {
  readonly low: number;
  readonly high: number;
}

/** An agent's part of an evaluation: its turns, tokens and reward. */
export interface AgentEvaluation {
  readonly turns: number;
  readonly callsPerEpisode: number;
  readonly invalid: number;
  /** The mean number of response tokens a turn. Absent if its endpoint reports none. */
  readonly responseTokens?: number;
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
 * are bootstrap intervals over tasks, or exact ones if all tasks score the same.
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

/** Its scores and rewards are absent if the reward of each episode failed. Logs of earlier versions have 0 there. */
export interface EvaluationEvent extends Partial<EvaluationScores> {
  readonly type: 'evaluation';
  readonly step: number;
  /** The tasks of which an episode has a score. */
  readonly tasks: number;
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

/** An evaluation of which at least one episode has a score. */
export type ScoredEvaluation = EvaluationEvent & EvaluationScores;

export const isScored = <Event extends EvaluationEvent>(event: Event): event is Event & ScoredEvaluation =>
  event.averageAtK !== undefined && (event.unscored ?? 0) !== event.episodes;

/** All played episodes, also those without a score. */
export const evaluatedEpisodes = ({
  episodes,
  tasks,
  samples,
}: Pick<EvaluationEvent, 'episodes' | 'tasks' | 'samples'>) => episodes ?? tasks * samples;

/** The number that stands for a run: the share of solved tasks, or the mean reward. */
export type Headline = 'score' | 'reward';

type Scored = Pick<ScoredEvaluation, 'averageAtK' | 'reward' | 'parts'>;

/**
 * The headline of a run's evaluations. A team that does not say what success is succeeds from a reward of 1 on, or by
 * the part `correct`. If it has neither, its rewards are no such numbers and the score never changes (a reward between
 * 0 and 1 that never reaches 1, for example), then the score says nothing, and the mean reward is the headline.
 * @param saysSuccess Whether the team has a function `success`; undefined in logs of earlier versions
 */
export function headlineOf(evaluations: readonly Scored[], saysSuccess: boolean | undefined): Headline {
  const [first] = evaluations;
  if (saysSuccess !== false || first === undefined) return 'score';
  const isFlat = evaluations.every(({ averageAtK }) => averageAtK === first.averageAtK);
  const differs = evaluations.some((event) => differ(rewardOf(event), event.averageAtK));
  return isFlat && differs && !evaluations.some(({ parts = {} }) => 'correct' in parts) ? 'reward' : 'score';
}

/** The mean reward before the cost of calls. */
function rewardOf({ reward, averageAtK, parts = {} }: Scored): number {
  const { calls, ...others } = parts;
  if (calls === undefined) return reward ?? averageAtK;
  return Object.values(others).reduce((sum, part) => sum + part, 0);
}

/**
 * Whether no episode of an evaluation succeeded because its rewards are no such numbers.
 * @param saysSuccess Whether the team has a function `success`
 */
export const lacksSuccess = (event: Scored & Pick<ScoredEvaluation, 'passAtK'>, saysSuccess: boolean): boolean =>
  event.passAtK === 0 && headlineOf([event], saysSuccess) === 'reward';

/** How to make the score mean something, for a run whose headline is its reward. */
export const HOW_TO_SUCCEED =
  'Success is a reward of at least 1, since the team does not say what it is. Add `success` beside `reward` to score solved tasks: success: ({ outcome, task }) => ...';

/**
 * The measures of an evaluation besides its scores, as label and number: the team's metrics; its reward if it differs
 * from the score, with its named parts if there are several; rewards of agents that have individual rewards.
 * @param run The evaluations of the run: a reward that differs in one of them is shown in this one too, even if it
 *   equals the score by chance
 */
export function measuresOf(
  event: ScoredEvaluation,
  run: readonly ScoredEvaluation[] = [event],
): readonly (readonly [label: string, value: number])[] {
  const { parts = {}, metrics = {}, agents } = event;
  const isOwn = (agent: string) =>
    run.some((other) => (other.agents[agent]?.reward ?? teamReward(other)) !== teamReward(other));
  return [
    ...Object.entries(metrics),
    ...(run.some((other) => teamReward(other) !== other.averageAtK) ? [['reward', teamReward(event)] as const] : []),
    ...several(parts).map(([name, value]) => [labelOfPart(name), value] as const),
    ...Object.entries(agents).flatMap(([agent, { reward = teamReward(event), parts: ofAgent = {} }]) =>
      isOwn(agent)
        ? [
            [`reward of ${agent}`, reward] as const,
            ...several(ofAgent).map(([name, value]) => [`reward of ${agent}: ${name}`, value] as const),
          ]
        : [],
    ),
  ];
}

const teamReward = ({ reward, averageAtK }: ScoredEvaluation): number => reward ?? averageAtK;

/** The label of a named part of the team's reward. */
export const labelOfPart = (name: string) => `reward: ${name}`;

const several = (named: Readonly<Record<string, number>>) =>
  Object.keys(named).length > 1 ? Object.entries(named) : [];

/**
 * The rewards of an evaluation with their named parts, by the labels of `measuresOf`. It includes rewards that equal
 * the score, so that runs can be compared in all of them.
 */
export function rewardsOf({ reward, parts = {}, agents }: EvaluationEvent): Record<string, number> {
  return {
    ...(reward === undefined ? {} : { reward }),
    ...Object.fromEntries(several(parts).map(([name, value]) => [labelOfPart(name), value])),
    ...Object.fromEntries(
      Object.entries(agents).flatMap(([agent, { reward: earned, parts: ofAgent = {} }]) => [
        ...(earned === undefined || earned === reward ? [] : [[`reward of ${agent}`, earned] as const]),
        ...several(ofAgent).map(([name, value]) => [`reward of ${agent}: ${name}`, value] as const),
      ]),
    ),
  };
}
