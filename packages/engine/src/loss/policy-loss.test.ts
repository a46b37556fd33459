import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { byType, expectBetween, inEach } from '../../../../test/support/expectations.js';
import { addsUp, everySpec, typeOfLoss } from '../../../../test/support/loss-specs.js';
import { normalizerOfRows } from './aggregate.js';
import { type LossSpec, lossKind } from './loss-spec.js';
import { type PolicyLossInput, policyLoss } from './policy-loss.js';

const specs = everySpec;

const number = fc.double({ min: -2, max: 2, noNaN: true });
const rows: fc.Arbitrary<PolicyLossInput> = fc
  .array(fc.array(fc.tuple(number, number, number, fc.constantFrom(0, 1, 1)), { minLength: 1, maxLength: 6 }), {
    minLength: 1,
    maxLength: 4,
  })
  .map((data) => ({
    logprobs: data.map((row) => row.map(([logprob]) => logprob - 3)),
    behaviourLogprobs: data.map((row) => row.map(([logprob, shift]) => logprob - 3 - shift / 2)),
    proximalLogprobs: data.map((row) => row.map(([logprob, shift]) => logprob - 3 - shift / 4)),
    advantages: data.map((row) => row.map(([, , advantage]) => advantage)),
    mask: data.map((row) => row.map(([, , , m]) => m)),
  }));

describe('policyLoss', () => {
  it.each(byType(specs, typeOfLoss))('has the gradient of its loss: $type', ({ items }) => {
    fc.assert(
      fc.property(rows, (input) =>
        inEach(items, (spec) => {
          const { gradient, metrics: before } = policyLoss(input, spec);
          const moved = (r: number, t: number, by: number): PolicyLossInput => {
            const nudge = (all: PolicyLossInput['logprobs'] = []) =>
              all.map((row, i) => Array.from(row, (x, j) => (i === r && j === t ? x + by : x)));
            const logprobs = nudge(input.logprobs);
            if (lossKind(spec).gradientOf === 'ratio') return { ...input, logprobs };
            // The ratio and the weight of the correction are constants of the gradient: all log-probs move together.
            return {
              ...input,
              logprobs,
              behaviourLogprobs: nudge(input.behaviourLogprobs),
              proximalLogprobs: nudge(input.proximalLogprobs),
            };
          };
          // The clipping bias and the KL baseline are constants for the gradient, so they stay fixed here too.
          const held = before.klBaseline === undefined ? {} : { klBaseline: before.klBaseline };
          const undamped = (moved: PolicyLossInput) => {
            const { loss, metrics } = policyLoss(moved, spec, held);
            return loss * (1 + (metrics.clippingBias ?? 0));
          };
          const damping = 1 + (before.clippingBias ?? 0);
          const here = undamped(input);
          gradient.forEach((row, r) => {
            row.forEach((slope, t) => {
              const h = 1e-5;
              const right = (undamped(moved(r, t, h)) - here) / h / damping;
              const left = (here - undamped(moved(r, t, -h))) / h / damping;
              expectBetween(slope, [left, right], 1e-3);
            });
          });
        }),
      ),
      { numRuns: 10 },
    );
  });

  it.each(byType(specs.filter(addsUp), typeOfLoss))(
    'adds up over parts that share a normalizer: $type',
    ({ items }) => {
      fc.assert(
        fc.property(rows, (input) =>
          inEach(items, (spec) => {
            const normalizer = normalizerOfRows(lossKind(spec).aggregate, input.mask);
            const whole = policyLoss(input, spec, { normalizer });
            const parts = input.logprobs.map((_, r) => {
              const pick = <T>(all: readonly T[]) => all.slice(r, r + 1);
              const part = Object.fromEntries(Object.entries(input).map(([name, rows]) => [name, pick(rows)]));
              return policyLoss(part as unknown as PolicyLossInput, spec, { normalizer });
            });
            expect(parts.reduce((sum, part) => sum + part.loss, 0)).toBeCloseTo(whole.loss, 12);
            expect(parts.flatMap((part) => part.gradient)).toEqual(whole.gradient);
          }),
        ),
        { numRuns: 20 },
      );
    },
  );

  it('is -mean(A) with gradient -A / n on the first pass over on-policy samples', () => {
    const logprobs = [new Float32Array([-0.3, -1.7, -2.5])];
    const input = { logprobs, behaviourLogprobs: logprobs, advantages: [[9, 2, -1]], mask: [[0, 1, 1]] };
    const result = policyLoss(input, { type: 'ppo-clip', clip: 0.2, aggregate: 'token-mean' });
    expect(result).toEqual({
      loss: -0.5,
      gradient: [[0, -1, 0.5]],
      metrics: {
        tokens: 2,
        units: 2,
        clipFraction: 0,
        clipFractionLower: 0,
        approxKl: 0,
        maxRatioDeviation: 0,
        logprobGap: 0,
      },
    });
  });

  // clip 0.2, dual clip 3: which bound acts depends on the advantage's sign.
  it.each([
    { ratio: 0.5, advantage: 1, loss: -0.5, gradient: -0.5, clipped: 0, lower: 0 },
    { ratio: 1.5, advantage: 1, loss: -1.2, gradient: 0, clipped: 1, lower: 0 },
    { ratio: 0.5, advantage: -1, loss: 0.8, gradient: 0, clipped: 1, lower: 0 },
    { ratio: 1.5, advantage: -1, loss: 1.5, gradient: 1.5, clipped: 0, lower: 0 },
    { ratio: 4, advantage: -1, loss: 3, gradient: 0, clipped: 0, lower: 1 },
    { ratio: 4, advantage: 1, loss: -1.2, gradient: 0, clipped: 1, lower: 0 },
  ])('clips at ratio $ratio, advantage $advantage', ({ ratio, advantage, loss, gradient, clipped, lower }) => {
    const input = {
      logprobs: [[Math.log(ratio) - 2]],
      behaviourLogprobs: [[-2]],
      advantages: [[advantage]],
      mask: [[1]],
    };
    const result = policyLoss(input, { type: 'ppo-clip', clip: 0.2, dualClip: 3, aggregate: 'token-mean' });
    expect(result.loss).toBeCloseTo(loss, 12);
    expect(result.gradient[0]?.[0]).toBeCloseTo(gradient, 12);
    expect(result.metrics).toMatchObject({ clipFraction: clipped, clipFractionLower: lower });
    expect(result.metrics.maxRatioDeviation).toBeCloseTo(Math.abs(ratio - 1), 12);
  });

  describe('with episode-mean', () => {
    const spec: LossSpec = { type: 'ppo-clip', clip: 0.2, aggregate: 'episode-mean' };
    /** Rows at ratio 1, whose loss is minus their advantages. */
    const played = (advantages: readonly (readonly number[])[], episodeTokens?: readonly number[]): PolicyLossInput => {
      const logprobs = advantages.map((row) => row.map(() => -1));
      const mask = advantages.map((row) => row.map(() => 1));
      return { logprobs, behaviourLogprobs: logprobs, advantages, mask, ...(episodeTokens && { episodeTokens }) };
    };

    it('weighs an episode alike however many turns it has', () => {
      const [long, short] = [[[1], [2, 3], [4]], [[-10, -20]]];
      const lengths = [4, 4, 4, 2];
      const { loss, gradient } = policyLoss(played([...long, ...short], lengths), spec);
      expect(loss).toBeCloseTo((-10 / 4 + 30 / 2) / 2, 12);
      expect(gradient.flat().map((slope) => Number(slope.toFixed(6)))).toEqual([-0.125, -0.25, -0.375, -0.5, 2.5, 5]);
    });

    it('is the same wherever an episode is cut into turns, and adds up over parts', () => {
      const values = fc.array(number, { minLength: 2, maxLength: 6 });
      fc.assert(
        fc.property(
          fc.array(values, { minLength: 1, maxLength: 4 }),
          fc.integer({ min: 1, max: 5 }),
          (episodes, at) => {
            const whole = policyLoss(played(episodes), spec).loss;
            const cut = episodes.flatMap((one) => [one.slice(0, at), one.slice(at)].filter((row) => row.length > 0));
            const lengths = episodes.flatMap((one) => (one.length > at ? [one.length, one.length] : [one.length]));
            expect(policyLoss(played(cut, lengths), spec).loss).toBeCloseTo(whole, 12);
            // Parts of their parts of the episodes: each divides by the share that it has.
            const half = Math.ceil(cut.length / 2);
            const shares = [
              [0, half],
              [half, cut.length],
            ].map(([from, to]) => {
              const [rows, of] = [cut.slice(from, to), lengths.slice(from, to)];
              const share = rows.reduce((sum, row, r) => sum + row.length / (of[r] as number), 0);
              return rows.length === 0 ? 0 : share * policyLoss(played(rows, of), spec).loss;
            });
            expect(shares.reduce((sum, share) => sum + share, 0) / episodes.length).toBeCloseTo(whole, 10);
          },
        ),
      );
    });

    it('takes a row for an episode where none is named: the mean over rows of their means', () => {
      const rows = [[1, 2, 6], [5]];
      const alike = policyLoss(played(rows), { ...spec, aggregate: 'seq-mean-token-mean' });
      expect(policyLoss(played(rows), spec).loss).toBeCloseTo(alike.loss, 12);
      expect(() => policyLoss(played(rows, [3]), spec)).toThrow('episodeTokens[0] has 1 entries, mask[0] has 2');
    });
  });

  describe('with seq-mean-token-sum-norm', () => {
    const spec: LossSpec = { type: 'ppo-clip', clip: 0.2, aggregate: 'seq-mean-token-sum-norm' };
    /** Two responses of three tokens and one, at ratio 1, after prompts and padding of so many tokens. */
    const padded = (prompt: number, padding: number) => {
      const row = (response: readonly number[], fill: number) => [
        ...new Array<number>(prompt).fill(fill),
        ...response,
        ...new Array<number>(padding).fill(fill),
      ];
      const logprobs = [row([-1, -1, -1], -9), row([-1, -9, -9], -9)];
      const advantages = [row([1, 1, 1], 5), row([-2, 5, 5], 5)];
      return { logprobs, behaviourLogprobs: logprobs, advantages, mask: [row([1, 1, 1], 0), row([1, 0, 0], 0)] };
    };

    it('divides the sum of all rows by the width of the widest, padding included', () => {
      expect(policyLoss(padded(2, 4), spec).loss).toBeCloseTo((-3 + 2) / 9, 12);
      expect(policyLoss(padded(0, 0), spec).loss).toBeCloseTo((-3 + 2) / 3, 12);
    });

    it('takes, with maxTokens, the mean over rows of their sums by that constant, however they are padded', () => {
      for (const input of [padded(0, 0), padded(2, 4)]) {
        const { loss, gradient } = policyLoss(input, spec, { maxTokens: 10 });
        expect(loss).toBeCloseTo((-3 / 10 + 2 / 10) / 2, 12);
        const slopes = gradient.flat().filter((slope) => slope !== 0);
        for (const [i, slope] of [-1, -1, -1, 2].entries()) expect(slopes[i]).toBeCloseTo(slope / 10 / 2, 12);
      }
      expect(() => policyLoss(padded(0, 0), spec, { maxTokens: 0 })).toThrow('maxTokens must be greater than 0, got 0');
    });
  });

  it('ignores what is masked, even when it is not a number', () => {
    const nan = Number.NaN;
    const old = { behaviourLogprobs: [[nan, -1.1]], proximalLogprobs: [[nan, -1.05]] };
    const input = { logprobs: [[nan, -1]], ...old, advantages: [[nan, 1]], mask: [[0, 1]] };
    for (const spec of specs) {
      const { loss, gradient, metrics } = policyLoss(input, spec);
      expect([loss, ...gradient.flat(), ...Object.values(metrics)].every(Number.isFinite)).toBe(true);
      expect(gradient[0]?.[0]).toBe(0);
    }
  });

  it('lets a number that is not one show', () => {
    const nan = Number.NaN;
    const old = { behaviourLogprobs: [[-1]], proximalLogprobs: [[-1]] };
    const input = { logprobs: [[nan]], ...old, advantages: [[1]], mask: [[1]] };
    for (const spec of specs) {
      expect(policyLoss(input, spec).loss).toBeNaN();
      expect(policyLoss(input, spec).metrics.maxRatioDeviation).toBeNaN();
    }
  });

  it('is 0 for no rows and for rows without response tokens', () => {
    for (const spec of specs) {
      const empty = { logprobs: [], behaviourLogprobs: [], proximalLogprobs: [], advantages: [], mask: [] };
      expect(policyLoss(empty, spec).loss).toBe(0);
      const old = { behaviourLogprobs: [[-1]], proximalLogprobs: [[-1]] };
      const prompt = { logprobs: [[-1]], ...old, advantages: [[1]], mask: [[0]] };
      expect(policyLoss(prompt, spec)).toMatchObject({ loss: 0, gradient: [[0]] });
    }
  });

  it('refuses what does not fit, by name', () => {
    const input = { logprobs: [[-1]], behaviourLogprobs: [[-1, -1]], advantages: [[1]], mask: [[1]] };
    const spec: LossSpec = { type: 'ppo-clip', clip: 0.2, aggregate: 'token-mean' };
    expect(() => policyLoss(input, spec)).toThrow('behaviourLogprobs[0] has 2 entries, logprobs[0] has 1');
    const fine = { ...input, behaviourLogprobs: [[-1]] };
    expect(() => policyLoss(fine, { ...spec, dualClip: 1 })).toThrow('loss.dualClip must be greater than 1');
    expect(() => policyLoss(fine, { ...spec, clip: -1 })).toThrow('loss.clip must be a number >= 0');
    const unknown = { ...spec, type: 'ppo' } as unknown as LossSpec;
    expect(() => policyLoss(fine, unknown)).toThrow(
      'unknown loss "ppo"; there are ppo-clip, turn-ppo, s-ppo, st-ppo, cispo',
    );
    const noAggregate = { ...spec, aggregate: 'mean' } as unknown as LossSpec;
    expect(() => policyLoss(fine, noAggregate)).toThrow('unknown aggregation "mean"');
    const { aggregate: _, ...bare } = spec;
    expect(() => policyLoss(fine, bare as LossSpec)).toThrow(
      "loss.aggregate is missing; 'ppo-clip' has no aggregation",
    );
    expect(() => policyLoss(fine, spec, { normalizer: Number.NaN })).toThrow('normalizer');
    const correction = { cap: 1.2, beyond: 'truncate', level: 'token' } as const;
    const corrected = { ...spec, importanceCorrection: correction };
    expect(() => policyLoss(fine, corrected)).toThrow('importanceCorrection needs proximalLogprobs');
    const capless = { ...spec, importanceCorrection: { ...correction, cap: 0 } };
    const whole = { ...fine, proximalLogprobs: [[-1]] };
    expect(() => policyLoss(whole, capless)).toThrow('importanceCorrection.cap must be greater than 0');
  });
});
