/** The update of a step: each policy and its critic learn from the turns of the agents that the policy speaks for. */
import { lossKind } from '../../loss/loss-spec.js';
import { lossOf } from '../../recipe/policy-losses.js';
import type { Progress, TrainingRun } from '../run-state.js';
import type { StepAdvantages, TurnAdvantage } from '../step/advantages.js';
import type { TurnScores } from '../step/turn-scores.js';
import { stepsAhead } from './critics.js';
import { settleKl } from './kl-penalty.js';
import { tokensByEpisode, trainingSample } from './training-samples.js';
import { updateCritic } from './update-critic.js';
import { updatePolicy } from './update-policy.js';
import type { PolicyUpdate, Updates } from './update-result.js';
import { updatedTokens } from './updated-tokens.js';

/** The update of a policy that still waits for its critic; it counts as applied, since none was dropped. */
const NOTHING_LEARNT: PolicyUpdate = { gradientNorm: 0, learningRate: 0, outcome: 'applied', agents: {} };

/** The updates of a step, epochs of mini-batches, of every policy; the policies are updated at the same time. */
export async function updatePolicies(
  run: TrainingRun,
  progress: Progress,
  step: number,
  scores: TurnScores,
  advantages: StepAdvantages,
): Promise<Updates> {
  const updates = await Promise.all(
    Array.from(scores.chains, async ([policy, chains]) => {
      if (chains.length === 0) return [];
      const turns = chains.flat();
      const learnt = chains.map((chain) => chain.map((turn) => advantages.byTurn.get(turn) as TurnAdvantage));
      const critic = await updateCritic(run, step, policy, learnt, scores.values);
      const learn = async () => {
        if (step <= stepsAhead(run.recipe, policy)) return NOTHING_LEARNT;
        const inLoss = run.recipe.policies[policy]?.kl?.in === 'loss';
        const weighsEpisodes = lossKind(lossOf(run.recipe, policy)).aggregate === 'episode-mean';
        const lengths = weighsEpisodes ? tokensByEpisode(learnt.flat()) : undefined;
        const samples = learnt.map((chain) =>
          trainingSample(
            chain.map(({ turn, advantage }) => ({
              ...{ turn, advantage },
              referenceLogprobs: inLoss ? scores.referenceLogprobs.get(turn) : undefined,
            })),
            lengths?.get((chain[0] as TurnAdvantage).episode),
          ),
        );
        const { update, ratios } = await updatePolicy(run, progress, step, policy, samples);
        const tokens = updatedTokens(chains, ratios);
        return { ...settleKl(progress.kl, policy, update, turns, scores.kl), ...(tokens.size === 0 ? {} : { tokens }) };
      };
      const update = await learn();
      return [[policy, critic === undefined ? update : { ...update, critic }] as const];
    }),
  );
  return Object.fromEntries(updates.flat());
}
