/** Parts of estimators with one advantage a token. */

import { ArgumentError } from '@drmas/engine/errors';
import type { TurnRecord } from '@drmas/engine/nouns';
import type { TurnBatch } from '../../turn-batch.js';

export function lengthOf({ length, tokenRewards }: TurnRecord): number | undefined {
  return length ?? tokenRewards?.length;
}

/**
 * Each turn's token rewards with its reward added to the last token.
 * @param earned The reward of each turn [turns] that arrives with its last token. Default: its `reward`
 * @throws ArgumentError with the turn that has no `length`
 */
export function tokenRewards(batch: TurnBatch, earned?: readonly number[]): number[][] {
  return batch.turns.map((turn, i) => {
    const length = lengthOf(turn);
    if (length === undefined) throw new ArgumentError(`${batch.nameOf(i)}: a token-level estimator needs its length`);
    const rewards = Array.from({ length }, (_, t) => turn.tokenRewards?.[t] ?? 0);
    if (turn.tokenRewards !== undefined && turn.tokenRewards.length !== length) {
      throw new ArgumentError(`${batch.nameOf(i)}: ${turn.tokenRewards.length} token rewards for ${length} tokens`);
    }
    if (length > 0) rewards[length - 1] = (rewards[length - 1] as number) + (earned?.[i] ?? turn.reward);
    return rewards;
  });
}

/** out[t] = x[t] + decay · out[t + 1]; `following` stands after the last. */
export function discountedSums(x: readonly number[], decay: number, following = 0): number[] {
  const sums = new Array<number>(x.length);
  let running = following;
  for (let t = x.length - 1; t >= 0; t--) {
    running = (x[t] as number) + decay * running;
    sums[t] = running;
  }
  return sums;
}

export const everyToken = (rows: readonly number[][]): number[][] => rows.map((row) => row.map(() => 1));
