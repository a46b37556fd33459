import type { EvaluationEvent } from './evaluation-event.js';

/**
 * The measures of an evaluation besides its scores, as label and number: the team's metrics; its reward if it differs
 * from the score, with its named parts if there are several; rewards of agents that have individual rewards.
 */
export function measuresOf(event: EvaluationEvent): readonly (readonly [label: string, value: number])[] {
  const { averageAtK, reward = averageAtK, parts = {}, metrics = {}, agents } = event;
  return [
    ...Object.entries(metrics),
    ...(reward === averageAtK ? [] : [['reward', reward] as const]),
    ...several(parts).map(([name, value]) => [labelOfPart(name), value] as const),
    ...Object.entries(agents).flatMap(([agent, { reward: earned = reward, parts: ofAgent = {} }]) =>
      earned === reward
        ? []
        : [
            [`reward of ${agent}`, earned] as const,
            ...several(ofAgent).map(([name, value]) => [`reward of ${agent}: ${name}`, value] as const),
          ],
    ),
  ];
}

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
