/** Estimators with one advantage a token. Every turn is a sequence of its own; nothing follows its last token. */
import { ArgumentError } from '../../core/errors.js';
import { whiten } from '../../loss/whiten.js';
import type { Batch } from '../batch.js';
import type { Estimator } from '../estimator.js';

/** REINFORCE++ (Hu et al. 2025): discounted returns, whitened over the tokens of the batch. */
export function reinforcePlusPlus(
  batch: Batch,
  { gamma = 1 }: Extract<Estimator, { type: 'reinforce++' }>,
): number[][] {
  const returns = tokenRewards(batch).map((rewards) => discountedSums(rewards, gamma));
  return whiten(returns, ones(returns));
}

/** ReMax (Li et al. 2023): returns minus the reward of the greedy response. @throws ArgumentError naming a turn without `baseline` */
export function remax(batch: Batch): number[][] {
  const baselines = batch.numbers('baseline', (turn) => turn.baseline);
  return tokenRewards(batch).map((rewards, i) =>
    discountedSums(rewards, 1).map((value) => value - (baselines[i] as number)),
  );
}

type Gae = Extract<Estimator, { type: 'gae' }>;

/**
 * Generalised advantage estimation (Schulman et al. 2016, eq. 16), whitened over the tokens of the batch or of the agent; or
 * the sums of TD residuals that were whitened over the agent's tokens, and not afterwards.
 * @throws ArgumentError naming a turn without one value a token
 */
export function gae(batch: Batch, { gamma = 1, lambda = 1, whiten: over = 'batch' }: Gae): number[][] {
  const residuals = tdResiduals(batch, gamma);
  const summed = (rows: readonly number[][]) => rows.map((row) => discountedSums(row, gamma * lambda));
  if (over === 'agent-residuals') return summed(whitenedByAgent(batch, residuals));
  const advantages = summed(residuals);
  return over === 'batch' ? whiten(advantages, ones(advantages)) : whitenedByAgent(batch, advantages);
}

/** What a critic is to predict: the advantage before any whitening + the value, which is the λ-return. */
export function gaeReturns(batch: Batch, { gamma = 1, lambda = 1 }: Gae): number[][] {
  return tdResiduals(batch, gamma).map((row, i) =>
    discountedSums(row, gamma * lambda).map((advantage, t) => advantage + (batch.turns[i]?.values?.[t] ?? 0)),
  );
}

/** r[t] + gamma · v[t + 1] - v[t]; nothing follows a turn's last token. */
function tdResiduals(batch: Batch, gamma: number): number[][] {
  return tokenRewards(batch).map((rewards, i) => {
    const values = batch.turns[i]?.values;
    if (values?.length !== rewards.length) throw new ArgumentError(`${batch.nameOf(i)}: gae needs one value a token`);
    return rewards.map((reward, t) => reward + gamma * (values[t + 1] ?? 0) - (values[t] as number));
  });
}

function whitenedByAgent(batch: Batch, rows: readonly number[][]): number[][] {
  const whitened = [...rows];
  const { of, count } = batch.agents;
  for (let agent = 0; agent < count; agent++) {
    const own = rows.flatMap((_, i) => (of[i] === agent ? [i] : []));
    const chosen = own.map((i) => rows[i] as number[]);
    whiten(chosen, ones(chosen)).forEach((row, r) => {
      whitened[own[r] as number] = row;
    });
  }
  return whitened;
}

const ones = (rows: readonly number[][]): number[][] => rows.map((row) => row.map(() => 1));

/** The turn's token rewards with its reward added to the last token. */
function tokenRewards(batch: Batch): number[][] {
  return batch.turns.map((turn, i) => {
    const length = turn.length ?? turn.tokenRewards?.length;
    if (length === undefined) throw new ArgumentError(`${batch.nameOf(i)}: a token-level estimator needs its length`);
    const rewards = Array.from({ length }, (_, t) => turn.tokenRewards?.[t] ?? 0);
    if (turn.tokenRewards !== undefined && turn.tokenRewards.length !== length) {
      throw new ArgumentError(`${batch.nameOf(i)}: ${turn.tokenRewards.length} token rewards for ${length} tokens`);
    }
    if (length > 0) rewards[length - 1] = (rewards[length - 1] as number) + turn.reward;
    return rewards;
  });
}

/** out[t] = x[t] + decay · out[t + 1]. */
function discountedSums(x: readonly number[], decay: number): number[] {
  const sums = new Array<number>(x.length);
  let running = 0;
  for (let t = x.length - 1; t >= 0; t--) {
    running = (x[t] as number) + decay * running;
    sums[t] = running;
  }
  return sums;
}
