import type { EvaluationEvent } from './evaluation-event.js';

/** The number that stands for a run: the share of solved tasks, or the mean reward. */
export type Headline = 'score' | 'reward';

type Scored = Pick<EvaluationEvent, 'averageAtK' | 'reward' | 'parts'>;

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
  const differs = evaluations.some((event) => rewardOf(event) !== event.averageAtK);
  return isFlat && differs && !evaluations.some(({ parts = {} }) => 'correct' in parts) ? 'reward' : 'score';
}

/** The mean reward before the cost of calls. */
function rewardOf({ reward, averageAtK, parts = {} }: Scored): number {
  const { outcome, calls } = parts;
  return (calls === undefined ? reward : outcome) ?? averageAtK;
}

/** How to make the score mean something, for a run whose headline is its reward. */
export const HOW_TO_SUCCEED =
  'Success is a reward of at least 1, since the team does not say what it is. Add `success` beside `reward` to score solved tasks: success: ({ outcome, task }) => ...';
