import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { byType, expectBetween, inEach } from '../../../../../test/support/expectations.js';
import { addsUp, someSpecs as specs, typeOfLoss } from '../../../../../test/support/loss-specs.js';
import { complete, entropyOf, evaluate, forward, terms, typeOfTerm } from '../../../../../test/support/objectives.js';
import { sampleOf } from '../../../../../test/support/samples.js';
import type { TrainingSample } from '../../base/core/sample.js';
import { countTokens, hasAdvantage, rowWeight } from '../aggregate.js';
import { type KlKind, klEstimator, klPenalty } from '../kl.js';
import { ownMetrics } from '../loss-metrics.js';
import { type AnyLoss, type LossSpec, lossKind } from '../loss-spec.js';
import { policyLoss } from '../policy-loss.js';
import { normalizerOf } from './merged-samples.js';
import { objectiveOf } from './objective.js';

// Few distinct responses, so that copies are the rule; advantages of both signs within a row, and rows of zeros.
const sample = fc
  .tuple(
    fc.constantFrom([1], [1, 2], [2, 1], [1, 2, 3], [3, 1, 2]),
    fc.array(fc.constantFrom(-2, -0.5, 0, 0.25, 1), { minLength: 3, maxLength: 3 }),
    fc.boolean(),
  )
  .map(([response, advantages, silent]) => {
    const perToken = response.map((_, t) => (silent ? 0 : (advantages[t] ?? 0)));
    const logprobs = (of: (token: number, t: number) => number) => Float32Array.from([7, ...response], of);
    return sampleOf(response, perToken, {
      // Some are an episode by themselves, the others a part of one.
      ...(response[0] === 2 ? { episodeTokens: 7 } : {}),
      referenceLogprobs: logprobs((token, t) => -0.5 * token + 0.2 * t),
      proximalLogprobs: logprobs((token, t) => -0.4 * token - 0.1 * t + Math.sin(3 * token + t) / 5),
      // Two turns, with a token between them that the policy did not write.
      ...(response[0] === 3 ? { mask: Uint8Array.of(0, 1, 0, 1) } : {}),
    });
  });
const samples = fc.array(sample, { minLength: 1, maxLength: 12 });

const total = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0);

/** The penalty of every token and its slope, 0 where masked. */
function penaltyOf(sample: TrainingSample, kind: KlKind) {
  const [logprobs, reference] = [forward(sample), sample.referenceLogprobs ?? []];
  const masked = (row: number[] = []) => row.map((value, t) => (sample.mask[t] === 1 ? value : 0));
  const { derivative } = klEstimator(kind);
  return {
    values: masked(klPenalty([logprobs], [reference], kind)[0]),
    slopes: masked(Array.from(logprobs, (logprob, t) => derivative(logprob - (reference[t] ?? 0)))),
  };
}

const inputOf = (batch: readonly TrainingSample[]) => ({
  logprobs: batch.map(forward),
  behaviourLogprobs: batch.map((each) => each.behaviourLogprobs),
  proximalLogprobs: batch.map((each) => each.proximalLogprobs ?? []),
  advantages: batch.map((each) => each.advantages),
  mask: batch.map((each) => each.mask),
  episodeTokens: batch.map(({ mask, episodeTokens = countTokens(mask) }) => episodeTokens),
});

describe('objectiveOf', () => {
  it.each(byType(terms, typeOfTerm))('gives for merged rows what the samples give one by one: $type', ({ items }) => {
    fc.assert(
      fc.property(samples, (batch) =>
        inEach(items, (term) => {
          const options = complete(term, batch);
          const merged = evaluate(batch, options);
          // Samples of different agents are not merged.
          const apart = evaluate(
            batch.map((each, i) => ({ ...each, agent: `agent ${i}` })),
            options,
          );
          expect(merged.loss).toBeCloseTo(apart.loss, 12);
          expect(merged.metrics.clippingBias ?? 0).toBeCloseTo(apart.metrics.clippingBias ?? 0, 12);
          merged.sent.forEach((row, r) => {
            const copies = apart.gradients.filter((_, i) => String(apart.sent[i]?.tokens) === String(row.tokens));
            merged.gradients[r]?.forEach((value, t) => {
              const expected = copies.reduce((sum, gradient) => sum + (gradient[t] ?? 0), 0);
              if (!(Math.abs(value - expected) <= 1e-6 * Math.max(1, Math.abs(expected)))) expect(value).toBe(expected);
            });
          });
          merged.spreads.forEach((spread, r) => {
            const copies = apart.spreads.filter(
              (_, i) => String(apart.sent[i]?.tokens) === String(merged.sent[r]?.tokens),
            );
            spread?.forEach((value, t) => {
              expect(value).toBeCloseTo(total(copies.map((row) => row?.[t] ?? Number.NaN)), 6);
            });
          });
          const left = new Set(apart.sent.map(({ tokens }) => String(tokens)));
          for (const { tokens } of merged.sent) expect(left).toContain(String(tokens));
        }),
      ),
      { numRuns: 12 },
    );
  });

  it.each(byType(terms, typeOfTerm))(
    'is the policy loss plus the penalty minus the bonus, aggregated alike: $type',
    ({ items }) => {
      fc.assert(
        fc.property(samples, (equal) =>
          inEach(items, (term) => {
            const batch = equal.map((each, i) => ({ ...each, agent: `agent ${i}` })); // not merged
            const options = complete(term, batch);
            const { normalizer, kl, entropyCoefficient = 0 } = options;
            const { sent, gradients, spreads, loss, metrics } = evaluate(batch, options);
            const { aggregate, withoutAdvantage } = lossKind(term.loss);
            const policy = policyLoss(inputOf(batch), term.loss, { normalizer });
            const held = batch.filter(
              (each) => withoutAdvantage !== 'excluded' || hasAdvantage(each.mask, each.advantages),
            );
            const penalties = new Map(
              held.map((each) => [each, kl === undefined ? undefined : penaltyOf(each, kl.kind)] as const),
            );
            const weightOf = ({ mask, episodeTokens }: TrainingSample) =>
              rowWeight(aggregate, countTokens(mask), { episodeTokens }) / normalizer;
            const scaleOf = (each: TrainingSample) => (kl?.coefficient ?? 0) * weightOf(each);
            const heldBack = held.map((each) => scaleOf(each) * total(penalties.get(each)?.values ?? []));
            const entropies = held.map((each) => {
              const written = [...entropyOf(each)].filter((_, t) => each.mask[t] === 1);
              return entropyCoefficient * weightOf(each) * total(written);
            });
            expect(loss).toBeCloseTo(policy.loss + total(heldBack) - total(entropies), 10);
            sent.forEach((each, i) => {
              const alone = policy.gradient[batch.indexOf(each as (typeof batch)[number])] ?? [];
              const slopes = penalties.get(each as (typeof batch)[number])?.slopes;
              gradients[i]?.forEach((value, t) => {
                expect(value).toBeCloseTo((alone[t] ?? 0) + scaleOf(each) * (slopes?.[t] ?? 0), 6);
              });
              if (entropyCoefficient === 0) expect(spreads[i]).toBeUndefined();
              else
                each.mask.forEach((m, t) => {
                  expect(spreads[i]?.[t]).toBeCloseTo(m === 0 ? 0 : -entropyCoefficient * weightOf(each), 7);
                });
            });
            const values = held.flatMap((each) => penalties.get(each)?.values ?? []);
            const written = total(held.map(({ mask }) => countTokens(mask)));
            if (kl === undefined || written === 0) expect(metrics).not.toHaveProperty('referenceKl');
            else expect(metrics.referenceKl).toBeCloseTo(total(values) / written, 10);
          }),
        ),
        { numRuns: 10 },
      );
    },
  );

  // Losses that divide by 1 + the clipping bias treat the bias as a constant; policy-loss.test.ts tests their gradient.
  it.each(
    byType(
      terms.filter(({ loss }) => addsUp(loss)),
      typeOfTerm,
    ),
  )('has the gradient of its loss: $type', ({ items }) => {
    fc.assert(
      fc.property(samples, (batch) =>
        inEach(items, (term) => {
          // Where the ratio is a constant of the gradient, the old log-probs move along.
          const held = lossKind(term.loss).gradientOf === 'logprob';
          const options = complete(term, batch);
          const { sent, gradients } = evaluate(batch, options);
          const lossAt = (row: number, token: number, by: number) => {
            const nudge = (values: Float32Array) => Float32Array.from(values, (x, t) => (t === token ? x + by : x));
            const key = String(sent[row]?.tokens);
            const moved = batch.map((each) =>
              held && String(each.tokens) === key
                ? {
                    ...each,
                    behaviourLogprobs: nudge(each.behaviourLogprobs),
                    proximalLogprobs: nudge(each.proximalLogprobs as Float32Array),
                  }
                : each,
            );
            return evaluate(moved, options, (each, i) => (i === row ? nudge(forward(each)) : forward(each))).loss;
          };
          const { loss: here } = evaluate(batch, options);
          gradients.forEach((gradient, r) => {
            gradient.forEach((slope, t) => {
              if (sent[r]?.mask[t] !== 1) {
                expect(slope).toBe(0);
                return;
              }
              const h = 2e-3;
              const [left, right] = [lossAt(r, t, -h), lossAt(r, t, h)];
              expectBetween(slope, [(here - left) / h, (right - here) / h], 0.01);
            });
          });
        }),
      ),
      { numRuns: 4 },
    );
  });

  it('counts in the metrics each copy that has an advantage, or that another term needs', () => {
    fc.assert(
      fc.property(samples, fc.constantFrom(...specs), fc.constantFrom(0, 0.2), (batch, loss, entropyCoefficient) => {
        const { withoutAdvantage } = lossKind(loss);
        const all = withoutAdvantage === 'scored' || (withoutAdvantage !== 'excluded' && entropyCoefficient > 0);
        const kept = batch.filter((each) => all || hasAdvantage(each.mask, each.advantages));
        const { clippingBias: _, klBaseline: __, ...expected } = policyLoss(inputOf(kept), loss).metrics;
        const { metrics } = evaluate(batch, complete({ loss, entropyCoefficient }, batch));
        for (const [name, value = Number.NaN] of Object.entries(expected))
          expect(metrics[name], name).toBeCloseTo(value, 12);
        const rows = kept.flatMap((each) => [...entropyOf(each)].filter((_, t) => each.mask[t] === 1));
        expect(metrics.tokens).toBe(rows.length);
        if (rows.length === 0) expect(Object.keys(metrics)).not.toContain('entropy');
        else expect(metrics.entropy).toBeCloseTo(rows.reduce((sum, x) => sum + x, 0) / rows.length, 6);
      }),
    );
  });

  it('has metrics that do not depend on mini-batches: sums over what they count, divided by their counts', () => {
    fc.assert(
      fc.property(samples, fc.constantFrom(...terms), fc.integer({ min: 2, max: 5 }), (batch, term, count) => {
        const whole = evaluate(batch, complete(term, batch)).metrics;
        const parts = Array.from({ length: count }, (_, k) => batch.filter((_, i) => i % count === k))
          .filter((part) => part.length > 0)
          .map((part) => evaluate(part, complete(term, part)).metrics);
        const total = (by: 'tokens' | 'units') => parts.reduce((sum, metrics) => sum + metrics[by], 0);
        expect([total('tokens'), total('units')]).toEqual([whole.tokens, whole.units]);
        for (const [name, value = Number.NaN] of Object.entries(whole)) {
          if (['tokens', 'units', 'maxRatioDeviation', ...Object.keys(ownMetrics(whole))].includes(name)) continue;
          const by = name.startsWith('clipFraction') ? 'units' : 'tokens';
          const sum = parts.reduce((sum, metrics) => sum + (metrics[name] ?? 0) * metrics[by], 0);
          expect(sum / whole[by], name).toBeCloseTo(value, 6);
        }
      }),
    );
  });

  it.each(byType(specs, typeOfLoss))(
    'divides as the policy loss does, whatever prompts stand before the responses: $type',
    ({ items }) => {
      fc.assert(
        fc.property(samples, fc.integer({ min: 1, max: 5 }), (batch, prompt) =>
          inEach(items, (loss) => {
            const apart = batch.map((each, i) => ({ ...each, agent: `agent ${i}` })); // not merged
            const { loss: whole } = evaluate(apart, { loss, normalizer: normalizerOf(apart, loss, 12) });
            const longer = (rows: readonly ArrayLike<number>[]) =>
              rows.map((row) => [...new Array<number>(prompt).fill(0), ...Array.from(row)]);
            const { logprobs, behaviourLogprobs, proximalLogprobs, advantages, mask, episodeTokens } = inputOf(batch);
            const input = {
              episodeTokens,
              logprobs: longer(logprobs),
              behaviourLogprobs: longer(behaviourLogprobs),
              proximalLogprobs: longer(proximalLogprobs),
              advantages: longer(advantages),
              mask: longer(mask),
            };
            expect(whole).toBeCloseTo(policyLoss(input, loss, { maxTokens: 12 }).loss, 12);
          }),
        ),
        { numRuns: 10 },
      );
    },
  );

  it('sends a row without advantage only where another term needs it', () => {
    const referenceLogprobs = Float32Array.of(0, -1);
    const batch = [sampleOf([1], [0], { referenceLogprobs }), sampleOf([2], [1], { referenceLogprobs })];
    const loss = specs[0] as LossSpec;
    expect(objectiveOf(batch, { loss, normalizer: 2 }).samples).toHaveLength(1);
    expect(objectiveOf(batch, { loss, normalizer: 2, kl: { kind: 'k3', coefficient: 0 } }).samples).toHaveLength(1);
    expect(objectiveOf(batch, { loss, normalizer: 2, kl: { kind: 'k3', coefficient: 1 } }).samples).toHaveLength(2);
    expect(objectiveOf(batch, { loss, normalizer: 2, entropyCoefficient: 0 }).samples).toHaveLength(1);
    expect(objectiveOf(batch, { loss, normalizer: 2, entropyCoefficient: 0.1 }).samples).toHaveLength(2);
  });

  it('learns demonstrations as they are: nothing merged, advantages not looked at', () => {
    const batch = [sampleOf([1, 2], [0, 0]), sampleOf([1, 2], [0, 0]), sampleOf([3], [5])];
    const { sent, gradients, loss } = evaluate(batch, { loss: { type: 'demonstrations' }, normalizer: 5 });
    expect(sent).toEqual(batch);
    expect(gradients.map((row) => [...row])).toEqual(
      batch.map(({ mask }) => [...Float32Array.from(mask, (m) => (m === 1 ? -1 / 5 : 0))]),
    );
    expect(loss).toBeCloseTo(batch.flatMap((each) => [...forward(each)]).reduce((sum, x) => sum - x, 0) / 5, 12);
  });

  it('refuses what a term lacks and what does not fit, by name', () => {
    const loss = specs[0] as LossSpec;
    const kl = { kind: 'k2', coefficient: 0.1 } as const;
    expect(() => evaluate([sampleOf([1], [1])], { loss, normalizer: 1, kl })).toThrow(
      'a sample of agent solver has no referenceLogprobs',
    );
    const short = sampleOf([1], [1], { referenceLogprobs: Float32Array.of(0) });
    expect(() => evaluate([short], { loss, normalizer: 1, kl })).toThrow('referenceLogprobs[0] has 1 entries');
    const fine = sampleOf([1], [1], { referenceLogprobs: Float32Array.of(0, -1) });
    const unknown = { kind: 'k4' as KlKind, coefficient: 0.1 };
    expect(() => evaluate([fine], { loss, normalizer: 1, kl: unknown })).toThrow('unknown KL kind "k4"');
    const endless = { ...kl, coefficient: Number.NaN };
    expect(() => evaluate([fine], { loss, normalizer: 1, kl: endless })).toThrow('kl.coefficient must be a number');
    expect(() => evaluate([fine], { loss, normalizer: 1, entropyCoefficient: Number.NaN })).toThrow(
      'entropyCoefficient must be a number',
    );
    expect(() => evaluate([fine], { loss, normalizer: 1 }, () => Float32Array.of(0))).toThrow('logprobs[0] has 1');
  });
});

describe('the ratios of tokens', () => {
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
          proximalLogprobs: Float32Array.from(
            [7, ...response],
            (token, t) => -0.4 * token + Math.sin(3 * token + t) / 5,
          ),
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

  it.each(byType(specs, typeOfLoss))(
    'of every sample, merged ones too, make up the metrics of the loss: $type',
    ({ items }) => {
      fc.assert(
        fc.property(samples, (batch) =>
          inEach(items, (loss) => {
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
            const { clipFraction = Number.NaN, clipFractionLower = Number.NaN } = metrics;
            expect(clipped).toBeCloseTo(clipFraction + clipFractionLower, 10);
            const furthest = Math.max(...tokens.map(({ i, t }) => Math.abs((ratios[i]?.ratios[t] ?? Number.NaN) - 1)));
            expect(furthest).toBeCloseTo(metrics.maxRatioDeviation ?? Number.NaN, 5);
          }),
        ),
        { numRuns: 12 },
      );
    },
  );

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
