import { mean } from '../../../base/math.js';
import { type Episode, type EpisodeGroup, trainedTurns, turnReward } from '../../../base/nouns.js';
import { keptGroups } from '../../advantage/filter.js';
import type { Recipe } from '../../recipe/recipe.js';

type Filter = NonNullable<Recipe['training']['filter']>;

/** The groups that the filter keeps. Without a filter: all groups. */
export function passFilter(groups: readonly EpisodeGroup[], filter: Filter | undefined): EpisodeGroup[] {
  if (filter === undefined) return [...groups];
  const scores = groups.map(({ episodes }) => episodes.map((episode) => filterScore(episode, filter.score)));
  return keptGroups(scores, filter).map((position) => groups[position] as EpisodeGroup);
}

/** The score of an episode, by the names of the estimators' `episodeScore`. */
function filterScore(episode: Episode, score: Filter['score']): number {
  const { team } = episode.score;
  const turns = trainedTurns(episode);
  if (score === 'outcome' || turns.length === 0) return team;
  const rewards = turns.map((turn) => turnReward(episode, turn));
  return score === 'mean' ? mean(rewards) : rewards.reduce((sum, reward) => sum + (reward - team), team);
}
