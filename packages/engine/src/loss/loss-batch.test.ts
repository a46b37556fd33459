import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { correctionWeights } from './loss-batch.js';
import type { ImportanceCorrection } from './loss-settings.js';
import type { LossSpec } from './loss-spec.js';
import { policyLoss } from './policy-loss.js';

const row = { behaviourLogprobs: [-9, -1, -1, -1], mask: [0, 1, 1, 1] };
const proximalLogprobs = [0, Math.log(3) - 1, Math.log(0.5) - 1, -1]; // importances 3, 1/2 and 1

describe('correctionWeights', () => {
  it.each([
    [{ cap: 2, beyond: 'truncate', level: 'token' }, [0, 2, 0.5, 1], 1],
    [{ cap: 2, beyond: 'mask', level: 'token' }, [0, 0, 0.5, 1], 1],
    [{ cap: 2, beyond: 'truncate', level: 'sequence' }, [0, 1.5, 1.5, 1.5], 0],
    [{ cap: 1.2, beyond: 'truncate', level: 'sequence' }, [0, 1.2, 1.2, 1.2], 3],
    [{ cap: 1.2, beyond: 'mask', level: 'sequence' }, [0, 0, 0, 0], 3],
  ] as const)('%o gives %o', (correction, weights, beyond) => {
    const corrected = correctionWeights({ ...row, proximalLogprobs }, correction);
    expect([...corrected.weights]).toEqual(weights.map((weight) => expect.closeTo(weight, 12)));
    expect(corrected.beyond).toBe(beyond);
  });

  it('stands a response that is a million times as probable, or as improbable', () => {
    const far = [0, 500, 500, 500].map((x) => x - 1);
    const correction: ImportanceCorrection = { cap: 2, beyond: 'truncate', level: 'sequence' };
    expect([...correctionWeights({ ...row, proximalLogprobs: far }, correction).weights]).toEqual([0, 2, 2, 2]);
    const gone = far.map((x) => -x);
    expect([...correctionWeights({ ...row, proximalLogprobs: gone }, correction).weights]).toEqual([0, 0, 0, 0]);
  });
});

describe('a loss that corrects importance', () => {
  const specs = [
    { type: 'ppo-clip', clip: 0.2, dualClip: 2, aggregate: 'token-mean' },
    { type: 'turn-ppo', clip: 0.1, aggregate: 'seq-mean-token-mean' },
    { type: 'st-ppo', clip: 0.1, aggregate: 'seq-mean-token-mean' },
    { type: 'cispo', clipLow: 0.2, clipHigh: 0.3, aggregate: 'token-mean' },
    { type: 'gspo', clipLow: 0.1, clipHigh: 0.1 },
  ] as const satisfies LossSpec[];
  const numbers = fc.array(fc.tuple(...Array.from({ length: 4 }, () => fc.double({ min: -1, max: 1, noNaN: true }))), {
    minLength: 1,
    maxLength: 5,
  });

  it.each(specs)('is the loss around the proximal policy with weighted advantages: %o', (spec) => {
    fc.assert(
      fc.property(numbers, (tokens) => {
        const column = (i: number, shift: number) => tokens.map((token) => (token[i] ?? 0) + shift);
        const [behaviour, proximal] = [column(0, -3), column(1, -3)];
        const mask = [tokens.map(() => 1)];
        const correction = { cap: 1.5, beyond: 'truncate', level: 'token' } as const;
        const common = { logprobs: [column(2, -3)], mask };
        const corrected = policyLoss(
          { ...common, behaviourLogprobs: [behaviour], proximalLogprobs: [proximal], advantages: [column(3, 0)] },
          { ...spec, importanceCorrection: correction },
        );
        const weights = proximal.map((logprob, t) => Math.min(1.5, Math.exp(logprob - (behaviour[t] ?? 0))));
        const advantages = [column(3, 0).map((advantage, t) => advantage * (weights[t] ?? 0))];
        const { metrics, ...expected } = policyLoss({ ...common, behaviourLogprobs: [proximal], advantages }, spec);
        expect(corrected).toMatchObject(expected);
        // the gap is to the policy that wrote, whatever the ratios are taken to
        const { logprobGap: _, ...around } = metrics;
        expect(corrected.metrics).toMatchObject(around);
        const mean = weights.reduce((sum, weight) => sum + weight, 0) / weights.length;
        expect(corrected.metrics.importanceWeight).toBeCloseTo(mean, 12);
        expect(corrected.metrics.importanceBeyond).toBeCloseTo(
          weights.filter((w) => w === 1.5).length / weights.length,
          12,
        );
      }),
    );
  });

  it.each(specs)('changes nothing where the update begins with the policy that wrote: %o', (spec) => {
    const behaviour = [[-1, -2, -0.5]];
    const input = {
      logprobs: [[-1.2, -1.5, -0.6]],
      behaviourLogprobs: behaviour,
      advantages: [[1, -1, 2]],
      mask: [[1, 1, 1]],
    };
    const importanceCorrection = { cap: 2, beyond: 'mask', level: 'sequence' } as const;
    const corrected = policyLoss({ ...input, proximalLogprobs: behaviour }, { ...spec, importanceCorrection });
    const plain = policyLoss(input, spec);
    expect(corrected).toEqual({ ...plain, metrics: { ...plain.metrics, importanceWeight: 1, importanceBeyond: 0 } });
  });
});
