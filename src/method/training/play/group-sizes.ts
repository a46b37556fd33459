/**
 * The number of episodes that each task of a step gets. A step's episodes can be divided by the predicted success of
 * tasks: at one half the rewards of a task differ most (VIP: Nguyen et al., arXiv 2602.01601, who predict by a Gaussian
 * process and minimise the variance of the gradient).
 */

import { ownValue } from '@drmas/engine/errors';
import { mean } from '@drmas/engine/math';
import { type Episode, type EpisodeGroup, successOf, type Task, trainedTurns, turnReward } from '@drmas/engine/nouns';
import { keptGroups } from '../../advantage/filter.js';
import type { Recipe } from '../../recipe/recipe.js';
import type { Playing } from '../run/playing.js';
import { levelOf, type Predictions, weightOf } from './curriculum.js';

/**
 * The number of episodes of each task: `groupSize` on average. If the curriculum divides the episodes, each task gets
 * `least`, and the remaining episodes are divided in proportion to the weights with which a curriculum draws. Fractions
 * are rounded by the largest remainders; among equal remainders the first task wins.
 */
export function groupSizesOf(
  tasks: readonly Task[],
  { training: { groupSize, curriculum } }: Pick<Playing, 'training'>,
  predictions: Predictions,
): number | number[] {
  if (curriculum?.groupSizes === undefined) return groupSize;
  const { least } = curriculum.groupSizes;
  const weights = tasks.map((task) => weightOf(ownValue(predictions, levelOf(task, curriculum.by)), curriculum));
  const sum = weights.reduce((total, weight) => total + weight, 0);
  const free = tasks.length * (groupSize - least);
  const shares = weights.map((weight) => (free * weight) / sum);
  const sizes = shares.map((share) => least + Math.floor(share));
  const left = tasks.length * groupSize - sizes.reduce((total, size) => total + size, 0);
  const remainders = shares.map((share, position) => ({ position, remainder: share - Math.floor(share) }));
  const larger = remainders.sort((a, b) => b.remainder - a.remainder).slice(0, left);
  for (const { position } of larger) sizes[position] = (sizes[position] as number) + 1;
  return sizes;
}

type Filter = NonNullable<Recipe['training']['filter']>;

/** Compares the episodes that estimators compare: those with a turn of an agent that trains. */
export function passFilter(groups: readonly EpisodeGroup[], filter: Filter | undefined): EpisodeGroup[] {
  if (filter === undefined) return [...groups];
  const scores = groups.map(({ episodes }) =>
    episodes.filter((episode) => trainedTurns(episode).length > 0).map((episode) => filterScore(episode, filter.score)),
  );
  return keptGroups(scores, filter).map((position) => groups[position] as EpisodeGroup);
}

/** The score of an episode, by the names of the estimators' `episodeScore`. */
function filterScore(episode: Episode, score: Filter['score']): number {
  if (score === 'success') return successOf(episode);
  const { team } = episode.score;
  if (score === 'outcome') return team;
  const turns = trainedTurns(episode);
  const rewards = turns.map((turn) => turnReward(episode, turn));
  if (score === 'mean') return mean(rewards);
  return turns.reduce((sum, { stepReward = 0, penalty }) => sum + stepReward - penalty, team);
}
