import { ArgumentError } from '../../core/errors.js';
import type { Batch } from '../batch.js';
import type { Estimator } from '../estimator.js';
import { type Groups, groupBy, within } from '../groups.js';
import { comparisonOf, measure, normalise, type Settings } from '../partition.js';
import { stepReturns } from '../returns.js';
import { similarity } from './similarity.js';

/**
 * GiGPO (Feng et al. 2025, eqs. 3-8): the episode's advantage among the task's episodes, plus `stepWeight` times the advantage
 * of the step's discounted return among the steps that started from the same observation. With `byAgent` both compare turns
 * of the same agent only (GiGPO and Dr. MAS combined). An observation seen once adds nothing.
 * @throws ArgumentError naming a turn without `observation` or `stepReward`, or a choice out of range
 */
export function gigpo(
  batch: Batch,
  estimator: Extract<Estimator, { type: 'gigpo' }>,
  settings: Settings,
): Float64Array {
  const { byAgent = false, spread = 'none', stepWeight = 1, gamma = 0.95 } = estimator;
  const unit = byAgent
    ? ({ score: 'turn', mean: 'agent', spread: 'agent' } as const)
    : ({ score: 'episode', mean: 'episodes', spread: 'episodes' } as const);
  const divide = spread === 'group';
  const fromEpisodes = normalise(batch, divide ? unit : { ...unit, spread: 'none' }, settings);

  const returns = stepReturns(batch, gamma);
  const outer = byAgent ? batch.taskAgents : batch.tasks;
  const members = observationGroups(batch, outer, estimator.similarity);
  const comparison = comparisonOf({ turns: members.of, members, values: returns, wider: outer }, 'zero');
  const fromSteps = measure(returns, { mean: comparison, spread: divide ? comparison : undefined }, settings);
  return fromEpisodes.map((advantage, i) => advantage + stepWeight * (fromSteps[i] as number));
}

function observationGroups(batch: Batch, outer: Groups, threshold: number | undefined): Groups {
  const observations = batch.turns.map(({ observation }, i) => {
    if (observation === undefined) throw new ArgumentError(`${batch.nameOf(i)}: gigpo needs an observation`);
    return observation;
  });
  const grouped = (key: (i: number) => string | number) => within(outer, groupBy(observations.length, key));
  if (threshold === undefined) return grouped((i) => observations[i] as string);
  if (!(threshold > 0 && threshold < 1)) {
    throw new ArgumentError(`advantage.similarity must lie between 0 and 1, got ${threshold}`);
  }
  // Each observation joins the first earlier one of its group that is similar enough, or stands for a new cluster.
  const representatives = Array.from({ length: outer.count }, (): string[] => []);
  return grouped((i) => {
    const known = representatives[outer.of[i] as number] as string[];
    const observation = observations[i] as string;
    const match = known.findIndex((other) => similarity(observation, other) >= threshold);
    return match >= 0 ? match : known.push(observation) - 1;
  });
}
