/** The costs of a run, from its events: tokens, time and money, by agent and by kind of work. */

import { playedEpisodes, type Spending, spentTogether, type TokenCount } from '@drmas/engine/host';
import { evaluatedEpisodes } from '@drmas/engine/nouns';
import type { EventsByKind } from '../../../../../src/runs/analysis.js';

export interface SpendingRow {
  readonly name: string;
  readonly tokens: TokenCount;
  /** Tokens read and written in an episode, on average; absent if unknown. */
  readonly perEpisode?: number;
  /** Absent of an agent: agents play at the same time. */
  readonly seconds?: number;
  /** Absent if no policy has a price. */
  readonly cost?: number;
}

/**
 * Every agent over the training's steps, all of them together, evaluations and the warm start. Runs of versions that
 * counted no tokens have none of it.
 */
export function spendingRows({ agents, steps, evaluations, warmups }: EventsByKind): SpendingRow[] {
  const counted = steps.filter((step) => Object.values(step.agents ?? {}).some(({ tokens }) => tokens !== undefined));
  const played = counted.reduce((sum, step) => sum + playedEpisodes(step), 0);
  const row = (name: string, spent: readonly Spending[], episodes: number, seconds?: number): SpendingRow[] => {
    if (spent.length === 0) return [];
    const { tokens, cost } = spentTogether(spent);
    return [
      {
        name,
        tokens,
        ...(episodes === 0 ? {} : { perEpisode: (tokens.read + tokens.written) / episodes }),
        ...(seconds === undefined ? {} : { seconds }),
        ...(cost === undefined ? {} : { cost }),
      },
    ];
  };
  const ofSteps = (name: string) => counted.flatMap((step) => spendingOf(step.agents[name]));
  const evaluated = evaluations.flatMap((event) => Object.values(event.agents ?? {}).flatMap(spendingOf));
  const warmed = warmups.map(({ tokens }): Spending => ({ tokens: { read: 0, written: 0, trained: tokens } }));
  return [
    ...agents.flatMap((name) => row(name, ofSteps(name), played)),
    ...row('all steps', agents.flatMap(ofSteps), played, secondsOf(counted)),
    ...row(
      'evaluations',
      evaluated,
      evaluations.reduce((sum, event) => sum + evaluatedEpisodes(event), 0),
      secondsOf(evaluations),
    ),
    ...row('warm start', warmed, 0, secondsOf(warmups)),
  ];
}

const spendingOf = (agent: { readonly tokens?: TokenCount; readonly cost?: number } | undefined): Spending[] => {
  if (agent?.tokens === undefined) return [];
  return [{ tokens: agent.tokens, ...(agent.cost === undefined ? {} : { cost: agent.cost }) }];
};

const secondsOf = (events: readonly { readonly seconds: number }[]) =>
  events.reduce((sum, { seconds }) => sum + seconds, 0);
