/** The update of a step: each policy and its critic learn from the turns of the policy's agents. */

import { lossKind, type SampleRatios } from '@drmas/engine/loss';
import type { Turn } from '@drmas/engine/nouns';
import type { UpdatedTokens } from '../../store/episode-files.js';
import type { StepAdvantages, TurnAdvantage } from '../advantages/advantages.js';
import { type Learner, stepsAhead } from '../run/learner.js';
import type { TrainingRun } from '../run/run-state.js';
import type { LearnerTurns, SignalsByTurn } from '../run/signal.js';
import type { TurnChain } from '../samples/chains.js';
import { spanOf, tokensByEpisode, trainingSample } from '../samples/training-samples.js';
import type { KlCoefficients } from '../signals/kl-penalty.js';
import { settleKl } from './settle-kl.js';
import type { UpdateCounts } from './update-counts.js';
import { updateCritic } from './update-critic.js';
import { type CountsUpdates, type SpikeLimits, updatePolicy } from './update-policy.js';
import type { PolicyUpdate, Updates } from './update-result.js';

export interface Learnt {
  /** The turns that each policy learnt from. A policy without a turn has an empty list. */
  readonly turns: readonly LearnerTurns[];
  readonly advantages: StepAdvantages;
  /** The measured inflation by agent. Empty unless the recipe measures it in this step. */
  readonly measured: Readonly<Record<string, number>>;
  readonly updates: Updates;
  readonly seconds: { readonly advantage: number; readonly update: number };
}

/** The update of a policy that still waits for its critic. It counts as applied, because no update was dropped. */
const NOTHING_LEARNT: PolicyUpdate = { gradientNorm: 0, learningRate: 0, outcome: 'applied', agents: {} };

/** The parts of a run's progress that updates read. The updates change the KL coefficients and the counts. */
interface UpdateState {
  readonly made: UpdateCounts;
  readonly kl: KlCoefficients;
  readonly watch: SpikeLimits;
}

export interface EstimatedStep {
  readonly step: number;
  readonly turns: readonly LearnerTurns[];
  readonly signals: SignalsByTurn;
  readonly advantages: StepAdvantages;
  readonly keepRatios: boolean;
}

/** Updates all policies on a step, in epochs of mini-batches. The policies are updated at the same time. */
export async function updatePolicies(
  { seed, training, staleness, host }: Pick<TrainingRun, 'seed' | 'training' | 'staleness' | 'host'>,
  { made, kl, watch }: UpdateState,
  { step, turns: ofLearners, signals, advantages, keepRatios }: EstimatedStep,
): Promise<Updates> {
  const position = { seed, step, steps: training.steps };
  const counts = made.before(step);
  const options = { made: counts, kl, watch, keepRatios, versions: staleness + 1 };
  const updates = await Promise.all(
    ofLearners.map(async ({ learner, chains }) => {
      if (chains.length === 0) return [];
      const learnt = chains.map((chain) => chain.map((turn) => advantages.byTurn.get(turn) as TurnAdvantage));
      const critic = await updateCritic(learner, position, learnt, signals, { counts, warn: host.warn });
      const learn = async () => {
        if (waits(learner, counts)) return NOTHING_LEARNT;
        const samples = samplesOf(learner, learnt, signals);
        const { update, ratios } = await updatePolicy(learner, position, samples, options);
        const tokens = updatedTokens(chains, ratios);
        const settled = settleKl(kl, learner, update, chains.flat(), signals);
        return { ...settled, ...(tokens.size === 0 ? {} : { tokens }) };
      };
      const update = await learn();
      return [[learner.name, critic === undefined ? update : { ...update, critic }] as const];
    }),
  );
  return Object.fromEntries(updates.flat());
}

/**
 * Whether a policy still waits for its critic in this step, which is counted then. The critic learns in steps that call
 * an agent of the policy, so other steps do not count.
 */
function waits(learner: Learner, counts: CountsUpdates): boolean {
  const steps = `${learner.name}.critic.ahead`; // no policy can have this name
  const waited = counts.of(steps, 1);
  const stillWaits = waited < stepsAhead(learner);
  if (stillWaits) counts.set(steps, waited + 1);
  return stillWaits;
}

function samplesOf({ kl, loss }: Learner, chains: readonly (readonly TurnAdvantage[])[], signals: SignalsByTurn) {
  const weighsEpisodes = lossKind(loss).aggregate === 'episode-mean';
  const lengths = weighsEpisodes ? tokensByEpisode(chains.flat()) : undefined;
  return chains.map((chain) =>
    trainingSample(
      chain.map(({ turn, advantage }) => ({
        turn,
        advantage,
        referenceLogprobs: kl?.in === 'loss' ? signals.get(turn)?.referenceLogprobs : undefined,
      })),
      lengths?.get((chain[0] as TurnAdvantage).episode),
    ),
  );
}

/** The ratios of each turn's tokens. `ratios` has one entry a chain. Chains without an entry are omitted. */
function updatedTokens(chains: readonly TurnChain[], ratios: SampleRatios): Map<Turn, UpdatedTokens> {
  const updated = new Map<Turn, UpdatedTokens>();
  chains.forEach((chain, i) => {
    const ofChain = ratios[i];
    if (ofChain === undefined) return;
    for (const turn of chain) {
      const { start, end } = spanOf(turn);
      const clipped: number[] = [];
      for (let at = start; at < end; at++) if (ofChain.clipped[at] === 1) clipped.push(at - start);
      const ratio = storedRatio(ofChain.ratios.subarray(start, end));
      updated.set(turn, clipped.length === 0 ? { ratio } : { ratio, clipped });
    }
  });
  return updated;
}

const DIGITS = 5;

const rounded = (ratio: number): number => Number(ratio.toPrecision(DIGITS));

/** One number if all tokens have the same ratio on disk, 1 for no token. */
function storedRatio(ratios: Float32Array): UpdatedTokens['ratio'] {
  const first = ratios[0] ?? 1;
  // Most often all are 1, since the policy is updated on its own samples.
  if (ratios.every((ratio) => ratio === first)) return rounded(first);
  const all = Array.from(ratios, rounded);
  return all.every((ratio) => ratio === all[0]) ? rounded(first) : all;
}
