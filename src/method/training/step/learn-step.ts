import { stepAdvantages } from '../advantages/advantages.js';
import type { Played } from '../play/played.js';
import { keepsEpisodes } from '../record/kept-episodes.js';
import type { TrainingRun } from '../run/run-state.js';
import { scoreSignals } from '../signals/index.js';
import { measureInflation } from '../stability/measured-inflation.js';
import type { Progress } from '../state/progress.js';
import { type EstimatedStep, type Learnt, updatePolicies } from '../update/update-policies.js';

export type LearningRun = Pick<
  TrainingRun,
  'seed' | 'training' | 'agents' | 'estimator' | 'staleness' | 'learners' | 'signals' | 'host'
>;

/**
 * Learns from the episodes of a step: scores the turns, compares them (advantages), and updates each policy on the
 * turns of its agents. Writes no file and emits no event. In the progress, only the counts of updates change, and the
 * KL coefficients if a controller adapts them.
 * @throws BackendError; ArgumentError with the turn that lacks an input of the estimator
 */
export async function learnStep(run: LearningRun, progress: Progress, played: Played): Promise<Learnt> {
  const { clock } = run.host;
  const started = clock.seconds();
  const estimated = await estimateAdvantages(run, progress, played);
  const measured = await measureInflation(run, played.step, estimated.advantages);
  const updating = clock.seconds();
  const keepRatios = keepsEpisodes(run.training, played.step);
  const updates = await updatePolicies(run, progress, { ...estimated, keepRatios });
  const seconds = { advantage: updating - started, update: clock.seconds() - updating };
  return { turns: estimated.turns, advantages: estimated.advantages, measured, updates, seconds };
}

export async function estimateAdvantages(
  { agents, estimator, learners, signals: wanted }: LearningRun,
  progress: Pick<Progress, 'kl' | 'estimator'>,
  { step, kept, extra }: Pick<Played, 'step' | 'kept' | 'extra'>,
): Promise<Omit<EstimatedStep, 'keepRatios'>> {
  const turns = learners.map((learner) => ({ learner, chains: learner.turns(kept) }));
  const signals = await scoreSignals(wanted, turns, progress.kl, extra);
  const advantages = stepAdvantages({ estimator, agents }, kept, signals, progress.estimator);
  return { step, turns, signals, advantages };
}
