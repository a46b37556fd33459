import { ArgumentError } from '@drmas/engine/errors';
import { whiten } from '@drmas/engine/math';
import { z } from 'zod';
import { defineEstimator } from '../../define-estimator.js';
import { discount } from '../../named-choices.js';
import type { TurnBatch } from '../../turn-batch.js';
import { discountedSums, everyToken, lengthOf, tokenRewards } from './token-rewards.js';

/**
 * Generalised advantage estimation (Schulman et al. 2016, eq. 16). A turn without one value a token is an error. The
 * critic's target is the advantage before whitening + the value: the λ-return.
 *
 * Across an episode the tokens of all turns are one sequence, in the order of the calls, also if several agents wrote
 * them. A turn's last token is followed by the first token of the next turn, whose own critic gives the value. Every
 * step earns its `stepReward` with its last token, and the outcome arrives once, at the end. A turn without
 * `stepReward` is an error.
 */
export const gae = defineEstimator({
  type: 'gae',
  schema: {
    gamma: discount.default(1).describe("The discount of later tokens' rewards."),
    lambda: discount.default(1).describe('How far credit reaches back: 0 is the next value alone, 1 is the return.'),
    across: z
      .enum(['turn', 'episode'])
      .default('turn')
      .describe(
        'One sequence is a turn, which ends with the whole reward, or an episode: then a turn is followed by ' +
          "the next, bootstraps from its critic's value, and the outcome arrives once.",
      ),
    whiten: z
      .enum(['batch', 'agent', 'agent-residuals'])
      .default('batch')
      .describe(
        "The numbers to whiten: the result, over the batch's or the agent's tokens, or the TD residuals, over " +
          "the agent's.",
      ),
  },
  source: 'Schulman et al. 2016',
  formula:
    "generalised advantage estimate, whitened over the step's tokens, or each agent's; or from TD residuals that " +
    "were whitened over each agent's tokens; `across: 'episode'`: of the episode's turns as one sequence",
  use: 'a critic: credit for single tokens, no groups',
  traits: { needs: 'values' },
  laws: ({ gamma, across }) => ({
    shift: across === 'turn' && gamma === 1 ? ['reward', 'values'] : [],
    takesScaleOut: true,
    scaleError: 1e-3,
  }),
  unused: ({ gamma }) => (gamma === 0 ? ['lambda'] : []),
  compute(batch, { gamma, lambda, whiten: over, across }) {
    const sequences = sequencesOf(batch, across);
    const residuals = tdResiduals(batch, sequences, gamma);
    const summed = (rows: readonly number[][]) => sumsAlong(sequences, rows, gamma * lambda);
    if (over === 'agent-residuals') return summed(whitenedByAgent(batch, residuals));
    const advantages = summed(residuals);
    return over === 'batch' ? whiten(advantages, everyToken(advantages)) : whitenedByAgent(batch, advantages);
  },
  returns(batch, { gamma, lambda, across }) {
    const sequences = sequencesOf(batch, across);
    return sumsAlong(sequences, tdResiduals(batch, sequences, gamma), gamma * lambda).map((row, i) =>
      row.map((advantage, t) => advantage + (batch.turns[i]?.values?.[t] ?? 0)),
    );
  },
});

interface Sequences {
  /** The positions of turns in the batch, in order; every turn with a token is in one sequence. */
  readonly turns: readonly (readonly number[])[];
  readonly rewards: readonly number[]; // [turns]
}

function sequencesOf(batch: TurnBatch, across: 'turn' | 'episode'): Sequences {
  const tokens = batch.turns.map(lengthOf);
  if (across === 'turn')
    return { turns: batch.turns.map((_, i) => [i]), rewards: batch.turns.map(({ reward }) => reward) };
  const stepRewards = batch.numbers('stepReward', (turn) => turn.stepReward);
  const rewards = new Array<number>(stepRewards.length).fill(0);
  const { of, count } = batch.episodes;
  const episodes = Array.from({ length: count }, (): number[] => []);
  batch.turns.forEach((_, i) => {
    episodes[of[i] as number]?.push(i);
  });
  const turns = episodes.map((members) => {
    const inOrder = members.sort((a, b) => (batch.turns[a]?.turn ?? 0) - (batch.turns[b]?.turn ?? 0));
    const written = inOrder.filter((i) => tokens[i] !== 0);
    const lastOfStep = new Map(inOrder.map((i) => [batch.stepOf(i), i]));
    // The last turn of a step with at least one token earns the step's reward.
    let earner = written[0];
    for (const i of inOrder) {
      if (tokens[i] !== 0) earner = i;
      if (earner !== undefined && lastOfStep.get(batch.stepOf(i)) === i)
        rewards[earner] = (rewards[earner] as number) + (stepRewards[i] as number);
    }
    return written;
  });
  return { turns, rewards };
}

/** r[t] + gamma · v[t + 1] - v[t]; t + 1 is the next token of the sequence. After the last token v is 0. */
function tdResiduals(batch: TurnBatch, { turns, rewards }: Sequences, gamma: number): number[][] {
  const residuals = tokenRewards(batch, rewards);
  residuals.forEach((row, i) => {
    if (batch.turns[i]?.values?.length !== row.length)
      throw new ArgumentError(`${batch.nameOf(i)}: gae needs one value a token`);
  });
  for (const sequence of turns)
    sequence.forEach((i, position) => {
      const next = batch.turns[sequence[position + 1] ?? -1]?.values?.[0] ?? 0;
      const values = batch.turns[i]?.values ?? [];
      const row = residuals[i] as number[];
      for (let t = 0; t < row.length; t++)
        row[t] = (row[t] as number) + gamma * (values[t + 1] ?? next) - (values[t] as number);
    });
  return residuals;
}

/** out[t] = x[t] + decay · out[t + 1] along each sequence. */
function sumsAlong({ turns }: Sequences, rows: readonly number[][], decay: number): number[][] {
  const sums = rows.map((): number[] => []);
  for (const sequence of turns) {
    let following = 0;
    for (const i of sequence.toReversed()) {
      sums[i] = discountedSums(rows[i] as number[], decay, following);
      following = sums[i]?.[0] ?? 0;
    }
  }
  return sums;
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
