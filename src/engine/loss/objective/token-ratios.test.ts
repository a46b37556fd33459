import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { someSpecs as specs } from '../../../../test/support/loss-specs.js';
import { forward } from '../../../../test/support/objectives.js';
import { sampleOf } from '../../../../test/support/samples.js';
import type { TrainingSample } from '../../../base/core/sample.js';
import { type AnyLoss, lossKind } from '../loss-spec.js';
import { policyLoss } from '../policy-loss.js';
import { objectiveOf } from './objective.js';

const sample = fc
  .tuple(
    fc.constantFrom([1], [1, 2], [2, 1], [1, 2, 3]),
    fc.array(fc.constantFrom(-2, -0.5, 0.25, 1), { minLength: 3, maxLength: 3 }),
  )
  .map(([response, advantages]) =>
    sampleOf(
      response,
      response.map((_, t) => advantages[t] ?? 0),
      {
        proximalLogprobs: Float32Array.from([7, ...response], (token, t) => -0.4 * token + Math.sin(3 * token + t) / 5),
      },
    ),
  );
const samples = fc.array(sample, { minLength: 1, maxLength: 8 });

/** The ratios of an objective after all of its samples were added. */
function ratiosOf(batch: readonly TrainingSample[], loss: AnyLoss) {
  const objective = objectiveOf(batch, { loss, normalizer: 1, keepRatios: true });
  const sums = objective.begin(() => objective.samples.map(forward));
  for (const [i, each] of objective.samples.entries()) sums.gradient(i, forward(each));
  return sums.result().ratios ?? [];
}

describe('the ratios of tokens', () => {
  it.each(specs)('of every sample, merged ones too, make up the metrics of the loss: %o', (loss) => {
    fc.assert(
      fc.property(samples, (batch) => {
        const ratios = ratiosOf(batch, loss);
        expect(ratios).toHaveLength(batch.length);
        const { metrics } = policyLoss(
          {
            logprobs: batch.map(forward),
            behaviourLogprobs: batch.map((each) => each.behaviourLogprobs),
            proximalLogprobs: batch.map((each) => each.proximalLogprobs ?? []),
            advantages: batch.map((each) => each.advantages),
            mask: batch.map((each) => each.mask),
            episodeTokens: batch.map(({ mask }) => mask.reduce((sum, m) => sum + m, 0)),
          },
          loss,
        );
        if (lossKind(loss).withoutAdvantage === 'excluded') return;
        const tokens = batch.flatMap(({ mask }, i) =>
          [...mask.keys()].flatMap((t) => (mask[t] === 1 ? [{ i, t }] : [])),
        );
        const clipped = tokens.filter(({ i, t }) => ratios[i]?.clipped[t] === 1).length / tokens.length;
        if (lossKind(loss).ratio !== 'token') return;
        expect(clipped).toBeCloseTo(metrics.clipFraction + metrics.clipFractionLower, 10);
        const furthest = Math.max(...tokens.map(({ i, t }) => Math.abs((ratios[i]?.ratios[t] ?? Number.NaN) - 1)));
        expect(furthest).toBeCloseTo(metrics.maxRatioDeviation, 5);
      }),
      { numRuns: 60 },
    );
  });

  it('are shared by the tokens of a sequence where the loss shares them, and 0 where nothing was written', () => {
    const loss = { type: 'gspo', clipLow: 1e-3, clipHigh: 1e-3 } as const;
    const [shared] = ratiosOf([sampleOf([1, 2], [1, 1])], loss);
    const [first = Number.NaN, second = Number.NaN, third] = shared?.ratios ?? [];
    expect(first).toBe(0);
    expect(second).toBe(third);
    expect(second).not.toBe(0);
  });

  it('are not there of a sample that adds nothing, nor where nobody asks', () => {
    const loss = specs[0] as AnyLoss;
    const batch = [sampleOf([1], [0]), sampleOf([2], [1])];
    expect(ratiosOf(batch, loss).map((one) => one !== undefined)).toEqual([false, true]);
    const plain = objectiveOf(batch, { loss, normalizer: 1 });
    const sums = plain.begin(() => plain.samples.map(forward));
    expect(sums.result()).not.toHaveProperty('ratios');
  });
});
