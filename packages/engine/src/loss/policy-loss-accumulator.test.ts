import { describe, expect, it } from 'vitest';
import type { LossRow } from './loss-batch.js';
import { type LossSpec, lossKind } from './loss-spec.js';
import { PolicyLossAccumulator } from './policy-loss-accumulator.js';

const spec: LossSpec = { type: 'ppo-clip', clip: 0.2, aggregate: 'token-mean' };
const plain = { kind: lossKind(spec), correction: undefined, normalizer: 4 };
const damped = { ...plain, kind: lossKind({ ...spec, type: 's-ppo' }) };

/** A row of tokens that were written with log-prob -2; a mask of 0 stands for a token of the prompt. */
const rowOf = (mask: readonly number[], advantages: readonly number[], changes: Partial<LossRow> = {}): LossRow => ({
  mask,
  behaviourLogprobs: mask.map(() => -2),
  copies: 1,
  parts: [{ advantages }],
  ...changes,
});

const ratios = (...values: number[]) => values.map((ratio) => Math.log(ratio) - 2);

describe('PolicyLossAccumulator', () => {
  it('adds rows one by one, each with the gradient of its tokens', () => {
    const rows = [rowOf([0, 1, 1], [9, 1, -2]), rowOf([1], [4])];
    const sums = new PolicyLossAccumulator(plain, rows, { sent: [], score: () => [] });
    expect([...sums.add(0, ratios(1, 1, 1))]).toEqual([0, -1 / 4, 2 / 4]);
    expect(sums.loss).toBeCloseTo((-1 + 2) / 4, 12);
    expect([...sums.add(1, ratios(2))]).toEqual([0]); // clipped
    expect(sums.loss).toBeCloseTo((-1 + 2 - 1.2 * 4) / 4, 12);
    expect(sums.metrics()).toMatchObject({ clipFraction: 1 / 3, maxRatioDeviation: expect.closeTo(1) });
  });

  it('counts a row as often as it has copies, and a part as often as its counts say', () => {
    const merged = rowOf([1, 1], [], {
      copies: 3,
      parts: [
        { advantages: [2, 1], counts: [2, 1] },
        { advantages: [-1, 0], counts: [1, 0] },
      ],
    });
    const single = [
      [1, 1],
      [1, 0],
      [-1, 0],
    ].map((advantages) => rowOf([1, 1], advantages));
    const sumsOf = (rows: readonly LossRow[]) => {
      const sums = new PolicyLossAccumulator(plain, rows, { sent: [], score: () => [] });
      const gradients = rows.map((_, i) => sums.add(i, ratios(1.5, 0.9)));
      const gradient = [0, 1].map((t) => gradients.reduce((sum, row) => sum + (row[t] ?? 0), 0));
      return { loss: sums.loss, gradient, metrics: sums.metrics() };
    };
    const [once, apart] = [sumsOf([merged]), sumsOf(single)];
    expect(once.loss).toBeCloseTo(apart.loss, 12);
    once.gradient.forEach((slope, t) => {
      expect(slope).toBeCloseTo(apart.gradient[t] as number, 12);
    });
    for (const name of ['clipFraction', 'clipFractionLower', 'approxKl', 'logprobGap'] as const)
      expect(once.metrics[name]).toBeCloseTo(apart.metrics[name] ?? Number.NaN, 12);
  });

  it('asks for the log-probs of all rows first where the loss is damped, and only there', () => {
    const rows = [rowOf([1, 1], [1, 1]), rowOf([1], [3])];
    const logprobs = [ratios(1, 1.5), ratios(1)];
    const refuse = () => {
      throw new Error('nobody needs them');
    };
    const free = new PolicyLossAccumulator(plain, rows, { sent: [], score: refuse });
    // 1.5 is left out of four tokens, one of them in a row that has no advantage and is not sent.
    const sent = [...rows, { mask: [0, 1] }];
    const held = new PolicyLossAccumulator(damped, rows, { sent, score: () => logprobs });
    expect(held.metrics().clippingBias).toBeCloseTo(1.5 / 4, 12);
    for (const [i, row] of logprobs.entries()) {
      const [slopes, undamped] = [held.add(i, row), free.add(i, row)];
      for (const [t, slope] of slopes.entries()) expect(slope).toBeCloseTo((undamped[t] as number) / (1 + 1.5 / 4), 12);
    }
    expect(held.loss).toBeCloseTo(free.loss / (1 + 1.5 / 4), 12);
    expect(free.metrics()).not.toHaveProperty('clippingBias');
  });

  it('refuses what it cannot add', () => {
    const batch = { sent: [], score: () => [] };
    const broken = { ...plain, normalizer: -1 };
    expect(() => new PolicyLossAccumulator(broken, [], batch)).toThrow('normalizer must be a number >= 0, got -1');
    expect(() => new PolicyLossAccumulator(plain, [], batch).add(0, [])).toThrow('there is no row 0; there are 0');
    const correction = { cap: 2, beyond: 'mask', level: 'token' } as const;
    const corrected = new PolicyLossAccumulator({ ...plain, correction }, [rowOf([1], [1])], batch);
    expect(() => corrected.add(0, [-2])).toThrow('importanceCorrection needs proximalLogprobs');
  });
});
