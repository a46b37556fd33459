import type { Turn } from '../../core/episode.js';
import type { TrainingRun } from '../run-state.js';
import { criticValues } from '../update/critics.js';
import { type KlCoefficients, klRewards, tokenKls } from '../update/kl-penalty.js';
import { referenceLogprobs } from '../update/references.js';
import type { EstimatorInputs } from './advantages.js';
import { branchBaselines } from './branches.js';
import { type ChainsByPolicy, chainsByPolicy } from './chains-by-policy.js';
import { greedyBaselines } from './greedy-baselines.js';
import type { StepRollout } from './rollout-step.js';

/** What is known of a step's turns beside their episodes; a turn's response has R tokens. */
export interface TurnScores extends EstimatorInputs {
  readonly chains: ChainsByPolicy;
  /** The values that critics predict for response tokens [R], where the estimator uses them. */
  readonly values: ReadonlyMap<Turn, Float32Array>;
  /** Log-probs of response tokens under the reference [R], of policies with a KL penalty. */
  readonly referenceLogprobs: ReadonlyMap<Turn, Float32Array>;
  /** The KL of those tokens [R], by the estimator of the turn's policy. */
  readonly kl: ReadonlyMap<Turn, readonly number[]>;
}

/**
 * Scores a step's turns under references and critics, and takes the baselines from its greedy episodes or from other
 * ends of its episodes.
 */
export async function turnScores(
  run: TrainingRun,
  coefficients: KlCoefficients,
  rollout: Pick<StepRollout, 'kept' | 'greedy' | 'branches'>,
): Promise<TurnScores> {
  const chains = chainsByPolicy(run.recipe, rollout.kept);
  const [references, values] = await Promise.all([referenceLogprobs(run, chains), criticValues(run, chains)]);
  const kl = tokenKls(run.recipe, references);
  const { kept, branches } = rollout;
  const other = branchBaselines(branches, kept, run.recipe.training.failedEpisodes);
  const baselines = new Map([...greedyBaselines(rollout), ...other]);
  const tokenRewards = klRewards(run.recipe, coefficients, kl);
  return { chains, values, referenceLogprobs: references, kl, tokenRewards, baselines };
}
