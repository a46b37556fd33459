/** Rewards of whole groups: what a team's `rewardGroup` returned becomes the scores of the episodes. */
import { type Episode, type EpisodeGroup, type Score, successOf, type Turn } from '@drmas/engine/nouns';
import type { RankedEpisode, Reward, Team } from '../team/team.js';
import { EpisodeFailure } from './episode-failure.js';
import type { RolloutContext } from './rollout-context.js';
import { failedScore, lessCallCosts, playedTurns, rewardedTurns, scoreOf, withPartWeights } from './score.js';

type RewardSettings = Pick<RolloutContext, 'agents' | 'partWeights'>;

/**
 * The group with the rewards that its episodes get together. Failed episodes stay as they are, and the team does not
 * see them. If the rewards fail, all others fail. A wrong reward fails its own episode. The first rewarded episode
 * keeps the turns of judges.
 * @param judge Calls the team's `rewardGroup`; the outcome of its result is the list of rewards
 */
export async function rewardTogether<Data>(
  team: Team<Data>,
  { task, episodes }: EpisodeGroup<Data>,
  settings: RewardSettings,
  judge: (judged: readonly RankedEpisode<Data, unknown>[]) => Promise<Episode<Data>>,
): Promise<EpisodeGroup<Data>> {
  const ended = episodes.filter(({ failure }) => failure === undefined);
  if (ended.length === 0) return { task, episodes };
  const judged = ended.map(({ sample, outcome, turns }) => ({ sample, outcome, turns: playedTurns(turns) }));
  const { outcome, failure, turns: judging } = await judge(judged);
  const rewards = outcome as readonly Reward[];
  const rewarded = ended.map((episode, i) => {
    const withJudges =
      i === 0 ? { ...episode, turns: [...episode.turns, ...numberedAfter(episode.turns, judging)] } : episode;
    const { reason, message, ...facts } = failure ?? {};
    if (reason !== undefined) return failed(withJudges, new EpisodeFailure(reason, message ?? '', facts), settings);
    try {
      return scored(team, withJudges, rewards[i] as Reward, settings);
    } catch (error) {
      return failed(withJudges, EpisodeFailure.of('reward', error), settings);
    }
  });
  const bySample = new Map(rewarded.map((episode) => [episode.sample, episode]));
  return { task, episodes: episodes.map((episode) => bySample.get(episode.sample) ?? episode) };
}

/** The turns of judges, with places after the turns of an episode. */
const numberedAfter = (turns: readonly Turn[], judging: readonly Turn[]): Turn[] =>
  judging.map((turn, i) => ({
    ...turn,
    turn: turns.length + i,
    call: turn.call + turns.filter(({ agent }) => agent === turn.agent).length,
  }));

const failed = <Data>(episode: Episode<Data>, { record }: EpisodeFailure, settings: RewardSettings): Episode<Data> => ({
  ...episode,
  outcome: undefined,
  score: failedScore(episode.turns, settings),
  failure: record,
});

/** @throws EpisodeFailure for a reward that is no reward */
function scored<Data>(
  team: Team<Data>,
  { score: before, turns: rewardedBefore, ...episode }: Episode<Data>,
  reward: Reward,
  { agents, partWeights }: RewardSettings,
): Episode<Data> {
  const { metrics } = before;
  const success = team.reward === undefined ? before.success : successOf({ score: before });
  const earned: Score = {
    ...scoreOf(reward, Object.keys(team.agents)),
    ...(success === undefined ? {} : { success }),
    ...(metrics === undefined ? {} : { metrics }),
  };
  // These rewards replace the rewards of `reward`, also for single turns.
  const turns = rewardedBefore.map(({ stepReward: _, duration: __, ...turn }) => turn);
  const score = withPartWeights(lessCallCosts(earned, playedTurns(turns), agents), partWeights);
  return { ...episode, score, turns: rewardedTurns(reward, turns) };
}
