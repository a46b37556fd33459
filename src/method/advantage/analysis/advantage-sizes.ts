import { statisticsOf } from '../groups.js';
import type { TurnBatch } from '../turn-batch.js';

/**
 * The size of a turn's advantage is the largest absolute advantage of its tokens.
 */
export interface AdvantageSizes {
  readonly meanAbs: number;
  readonly maxAbs: number;
  /** The share of turns with advantage 0. Nothing is learnt from them. */
  readonly zero: number;
  /** The mean of A², by which the agent's squared gradient is scaled. */
  readonly secondMoment: number;
}

export function advantageSizes(
  batch: TurnBatch,
  advantages: ArrayLike<number | readonly number[]>,
): Record<string, AdvantageSizes> {
  const { agents } = batch;
  const sizes = new Float64Array(batch.turns.length);
  const largest = new Float64Array(agents.count);
  for (let i = 0; i < sizes.length; i++) {
    const k = agents.of[i] as number;
    const size = magnitude(advantages[i] as number | readonly number[]);
    sizes[i] = size;
    if (size > (largest[k] as number)) largest[k] = size;
  }
  const meanOf = (values: Float64Array) => statisticsOf(agents, values).mean;
  const meanAbs = meanOf(sizes);
  const zero = meanOf(sizes.map((size) => (size === 0 ? 1 : 0)));
  const secondMoment = meanOf(sizes.map((size) => size * size));
  return batch.byAgent((k) => ({
    meanAbs: meanAbs[k] as number,
    maxAbs: largest[k] as number,
    zero: zero[k] as number,
    secondMoment: secondMoment[k] as number,
  }));
}

/** The largest |advantage| of a turn's tokens. */
export function magnitude(advantage: number | readonly number[]): number {
  if (typeof advantage === 'number') return Math.abs(advantage);
  return advantage.reduce((most, one) => Math.max(most, Math.abs(one)), 0);
}
