import type { Warning } from '../../../base/events.js';
import { missingParts } from '../../../teams/rollout.js';
import type { Recipe } from '../../recipe/recipe.js';
import type { Played } from '../play/played.js';
import type { Updates } from '../update/update-result.js';

/**
 * A warning for each agent whose sampler and trainer differ by more than the recipe allows. There is none for weights
 * that were updated after they played, because their log-probs must differ.
 */
export function gapWarnings(
  { step, staleness = 0 }: Pick<Played, 'step' | 'staleness'>,
  updates: Updates,
  limit: number,
): Warning[] {
  if (staleness > 0) return [];
  return Object.values(updates)
    .flatMap(({ agents }) => Object.entries(agents))
    .filter(([, { logprobGap }]) => logprobGap > limit)
    .map(([agent, { logprobGap }]) => ({
      type: 'warning',
      code: 'logprobs.differ',
      message: `step ${step}: the log-probs with which agent '${agent}' was sampled differ from the trainer's by ${logprobGap.toPrecision(3)} on average (training.logprobGap: ${limit})`,
    }));
}

/**
 * A warning for each agent whose calls `play` does not wait for. It is given in the first step: a mistake in a team
 * shows there, and a team that drops calls on purpose reads it once.
 */
export function awaitWarnings({ step, all }: Pick<Played, 'step' | 'all'>): Warning[] {
  if (step !== 1) return [];
  const episodes = all.flatMap((group) => group.episodes);
  const agents = new Set(episodes.flatMap(({ unanswered = {} }) => Object.keys(unanswered)));
  return [...agents].sort().map((agent) => {
    const left = episodes.filter(({ unanswered = {} }) => agent in unanswered);
    const [first] = left;
    return {
      ...{ type: 'warning', code: 'calls.unanswered', step, agent },
      message: `step 1: in ${left.length} of ${episodes.length} episodes, such as ${first?.task.id}/${first?.sample}, \`play\` returned before a call of '${agent}' was answered. The call was cancelled and is no turn. If that is not on purpose, \`await\` the call.`,
    };
  });
}

/**
 * A warning about weights for parts of the reward that no episode has. It is given once; the name is probably misspelt.
 */
export function partWarnings(
  { partWeights }: Pick<Recipe['training'], 'partWeights'>,
  { step, all }: Pick<Played, 'step' | 'all'>,
): Warning[] {
  if (step !== 1) return [];
  const missing = missingParts(
    all.flatMap(({ episodes }) => episodes),
    partWeights,
  );
  return missing.map((name) => ({
    type: 'warning',
    code: 'parts.missing',
    message: `training.partWeights.${name}: no episode's reward has a part of this name, so its weight changes nothing`,
  }));
}
