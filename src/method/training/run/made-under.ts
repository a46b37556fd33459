import type { LossSpec } from '@drmas/engine/loss';
import type { OpenEstimator } from '../../advantage/define-estimator.js';
import type { Recipe } from '../../recipe/recipe.js';

/** Settings by the name of the part of a run's progress that holds only under them, or by a part's name and its key. */
export type MadeUnder = Readonly<Record<string, string>>;

interface Phases {
  readonly training: Recipe['training'];
  readonly evaluation: Recipe['evaluation'];
}

interface Team {
  readonly agents: Recipe['agents'];
  readonly policies: Recipe['policies'];
}

/** @param losses The settings of the losses by policy */
export function madeUnder(
  { training, evaluation }: Phases,
  { agents, policies }: Team,
  { choices }: Pick<OpenEstimator, 'choices'>,
  losses: Readonly<Record<string, LossSpec>>,
): MadeUnder {
  const { curriculum, partWeights, failedEpisodes, bestBy, keepBest = false } = training;
  const ofAgents = (partOf: (agent: Recipe['agents'][string]) => unknown) =>
    Object.entries(agents).map(([name, agent]) => [name, partOf(agent)]);
  const costs = ofAgents(({ invalidPenalty, callCost, tokenCost }) => [invalidPenalty, callCost, tokenCost]);
  const rewards = { partWeights, failedEpisodes, costs };
  const samplings = ofAgents((agent) => ({ ...agent.sampling, ...evaluation.sampling, ...agent.evaluationSampling }));
  const { tasks, samples, samplesDuring } = evaluation;
  const ofSamples = bestBy === 'passAtK' || bestBy === 'majorityAtK' ? { samples, samplesDuring } : {};
  const scores = { tasks, samplings, ...ofSamples, ...(bestBy === 'reward' && { partWeights, costs }) };
  const coefficients = Object.entries(policies).map(([name, { kl }]) => [`kl.${name}`, kl?.coefficient]);
  const settings: Readonly<Record<string, unknown>> = {
    estimator: { choices, rewards },
    predictions: curriculum?.by,
    'watch.norms': { choices, losses },
    'watch.symptoms': { rewards, samplings: ofAgents(({ sampling }) => sampling) },
    'stops.best': { scores, keepBest }, // without keepBest the best step may have no checkpoint
    'stops.waiting': scores,
    'stops.low': rewards,
    ...Object.fromEntries(coefficients),
  };
  const given = Object.entries(settings).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given.map(([name, value]) => [name, JSON.stringify(value)]));
}
