import { z } from 'zod';
import { ArgumentError } from '../../../core/errors.js';
import { whiten } from '../../../loss/whiten.js';
import { defineEstimator } from '../../define-estimator.js';
import { discount } from '../../named-choices.js';
import type { TurnBatch } from '../../turn-batch.js';
import { discountedSums, everyToken, tokenRewards } from './token-rewards.js';

/**
 * Generalised advantage estimation (Schulman et al. 2016, eq. 16). A turn without one value a token is refused by name.
 * What a critic is to predict is the advantage before any whitening + the value, which is the λ-return.
 */
export const gae = defineEstimator({
  type: 'gae',
  schema: {
    gamma: discount.default(1).describe("The discount of later tokens' rewards."),
    lambda: discount.default(1).describe('How far credit reaches back: 0 is the next value alone, 1 is the return.'),
    whiten: z
      .enum(['batch', 'agent', 'agent-residuals'])
      .default('batch')
      .describe(
        "What is whitened over whose tokens: the result over the batch's or the agent's, or the TD residuals over " +
          "the agent's.",
      ),
  },
  source: 'Schulman et al. 2016',
  formula:
    "generalised advantage estimate, whitened over the step's tokens, or each agent's; or from TD residuals that " +
    "were whitened over each agent's tokens",
  use: 'a critic: credit for single tokens, no groups',
  traits: { needs: 'values' },
  laws: ({ gamma }) => ({ shift: gamma === 1 ? ['reward', 'values'] : [], takesScaleOut: true, scaleError: 1e-3 }),
  compute(batch, { gamma, lambda, whiten: over }) {
    const residuals = tdResiduals(batch, gamma);
    const summed = (rows: readonly number[][]) => rows.map((row) => discountedSums(row, gamma * lambda));
    if (over === 'agent-residuals') return summed(whitenedByAgent(batch, residuals));
    const advantages = summed(residuals);
    return over === 'batch' ? whiten(advantages, everyToken(advantages)) : whitenedByAgent(batch, advantages);
  },
  returns: (batch, { gamma, lambda }) =>
    tdResiduals(batch, gamma).map((row, i) =>
      discountedSums(row, gamma * lambda).map((advantage, t) => advantage + (batch.turns[i]?.values?.[t] ?? 0)),
    ),
});

/** r[t] + gamma · v[t + 1] - v[t]; nothing follows a turn's last token. */
function tdResiduals(batch: TurnBatch, gamma: number): number[][] {
  return tokenRewards(batch).map((rewards, i) => {
    const values = batch.turns[i]?.values;
    if (values?.length !== rewards.length) throw new ArgumentError(`${batch.nameOf(i)}: gae needs one value a token`);
    return rewards.map((reward, t) => reward + gamma * (values[t + 1] ?? 0) - (values[t] as number));
  });
}

function whitenedByAgent(batch: TurnBatch, rows: readonly number[][]): number[][] {
  const whitened = [...rows];
  const { of, count } = batch.agents;
  for (let agent = 0; agent < count; agent++) {
    const members = rows.flatMap((_, i) => (of[i] === agent ? [i] : []));
    const rowsOfAgent = members.map((i) => rows[i] as number[]);
    whiten(rowsOfAgent, everyToken(rowsOfAgent)).forEach((row, r) => {
      whitened[members[r] as number] = row;
    });
  }
  return whitened;
}
