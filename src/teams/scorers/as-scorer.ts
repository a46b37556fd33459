import { ArgumentError, isObject } from '../../base/errors.js';
import type { Reward, RewardParts, Team } from '../team/team.js';

/** The team's reward as a scorer of other packages. */
export type TeamScorer<Data, Outcome> = (args: {
  readonly input: Data;
  readonly output: Outcome;
}) => Promise<{ readonly name: string; readonly score: number; readonly metadata: Readonly<Record<string, number>> }>;

/**
 * The reward of a team as a scorer that autoevals' and evalite's runners, or a function of Mastra's, can call: `input`
 * is the task, `output` what `play` returned. The score is the team's success, else its reward; the parts are in
 * `metadata`. The team must judge the outcome alone: there are no turns and no agents.
 * @throws ArgumentError for a team that rewards groups of episodes
 *
 * @example
 * ```ts
 * import { solverVerifier } from 'drmas';
 * import { asScorer } from 'drmas/tasks';
 *
 * const scorer = asScorer(solverVerifier());
 * ```
 */
export function asScorer<Data, Outcome>(
  team: Pick<Team<Data, never, Outcome>, 'name' | 'reward' | 'success'>,
): TeamScorer<Data, Outcome> {
  const { reward: rewardOf } = team;
  if (rewardOf === undefined)
    throw new ArgumentError(`the team '${team.name}' rewards groups of episodes, expected a reward of one episode`);
  return async ({ input, output }) => {
    const episode = { task: { id: 'scored', data: input }, sample: 0, turns: [] };
    const context = {
      task: input,
      outcome: output,
      episode,
      agents: {},
      signal: new AbortController().signal,
    } as never;
    const reward: Reward = await rewardOf(context);
    const ofTeam = isObject(reward) && 'team' in reward ? (reward.team as number | boolean | RewardParts) : reward;
    const parts = isObject(ofTeam) ? Object.entries(ofTeam).map(([name, value]) => [name, Number(value)] as const) : [];
    const sum = isObject(ofTeam) ? parts.reduce((total, [, value]) => total + value, 0) : Number(ofTeam);
    const success = await team.success?.(context);
    return {
      name: team.name,
      score: success === undefined ? sum : Number(success),
      metadata: Object.fromEntries(parts),
    };
  };
}
