/**
 * Parts of estimators with one advantage a token. Every turn is a sequence by itself: nothing follows its last token.
 */
import { ArgumentError } from '../../../core/errors.js';
import type { TurnBatch } from '../../turn-batch.js';

/**
 * Each turn's token rewards with its reward added to the last token.
 * @throws ArgumentError naming a turn without `length`
 */
export function tokenRewards(batch: TurnBatch): number[][] {
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
export function discountedSums(x: readonly number[], decay: number): number[] {
  const sums = new Array<number>(x.length);
  let running = 0;
  for (let t = x.length - 1; t >= 0; t--) {
    running = (x[t] as number) + decay * running;
    sums[t] = running;
  }
  return sums;
}

/** The weights by which every token counts once. */
export const everyToken = (rows: readonly number[][]): number[][] => rows.map((row) => row.map(() => 1));
