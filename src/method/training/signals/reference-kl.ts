/** The KL of sampled tokens from the policies' references. */

import { suggestion } from '@drmas/engine/errors';
import type { Signal } from '../run/signal.js';
import { scoreTurns } from '../samples/training-samples.js';
import { tokenKl } from './kl-penalty.js';

/**
 * Log-probs under the reference and their KL. If the penalty is part of the reward or of the advantage, also its cost.
 * In the advantage with the kind `k1` it is on-policy distillation as Thinking Machines describes it (2025): each
 * token's advantage is minus its reverse KL from the teacher, and no later token counts.
 */
export const referenceKl: Signal = {
  name: 'reference-kl',
  wanted: ({ policies }) => Object.values(policies).some(({ kl }) => kl !== undefined),
  async score(turns, coefficients) {
    const scored = await Promise.all(
      turns.map(async ({ learner, chains }) => {
        const { reference, kl: settings } = learner;
        if (reference === undefined || settings === undefined || chains.length === 0) return [];
        const logprobs = await scoreTurns(chains, (samples) => reference.logprobs(samples));
        const coefficient = coefficients.of(learner);
        return Array.from(logprobs, ([turn, referenceLogprobs]) => {
          const kl = tokenKl(turn.logprobs, referenceLogprobs, settings.kind);
          const scores = { referenceLogprobs, kl };
          if (settings.in === 'loss') return [turn, scores] as const;
          const cost = kl.map((token) => -coefficient * token);
          const costs = settings.in === 'reward' ? { tokenRewards: cost } : { tokenAdvantages: cost };
          return [turn, { ...scores, ...costs }] as const;
        });
      }),
    );
    return new Map(scored.flat());
  },
  // The reference may be another policy of the recipe.
  *checks({ estimator, policies }) {
    for (const [policy, { kl }] of Object.entries(policies)) {
      yield {
        path: `policies.${policy}.kl.in`,
        test: kl?.in !== 'reward' || estimator.penalties === 'counted',
        message: `'${estimator.type}' ${estimator.penalties === 'normalised' ? 'takes out the coefficient of' : 'leaves out'} a KL in the reward: expected 'loss' or 'advantage'`,
      };
      yield {
        path: `policies.${policy}.kl.kind`,
        test: kl?.in !== 'advantage' || kl.kind === 'k1',
        message: `in the advantage '${kl?.kind}' does not lead to the reference: expected 'k1'`,
      };
      if (kl?.reference.type !== 'policy') continue;
      const other = kl.reference.policy;
      const path = `policies.${policy}.kl.reference.policy`;
      yield {
        path,
        test: other !== policy,
        message: 'the KL of a policy from itself is 0: expected another policy',
      };
      yield {
        path,
        test: Object.hasOwn(policies, other),
        message: `there is no policy '${other}'${suggestion(other, Object.keys(policies))}`,
      };
    }
  },
};
