/** The laws of a single token, for every declared loss. `policyLoss` and `objectiveOf` have theirs beside them. */

import type { TokenOutcome } from '@drmas/engine/loss';
import { type AnyLoss, lossKind, lossTypes } from '@drmas/engine/loss';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { z } from 'zod';
import { standard } from '../src/runs/composition/standard.js';
import { expectBetween } from './support/expectations.js';
import { everySpec, nameOfLoss } from './support/loss-specs.js';

const ratio = fc.double({ min: 0.2, max: 4, noNaN: true });
const advantage = fc.double({ min: 0.01, max: 3, noNaN: true }).chain((size) => fc.constantFrom(size, -size));
const logprob = fc.double({ min: -6, max: -0.01, noNaN: true });

/** A function from a token to its outcome. */
function tokenOf(spec: AnyLoss) {
  const { token } = lossKind(spec);
  return (ofRatio: number, ofAdvantage: number, ofLogprob: number): TokenOutcome => {
    const outcome = { loss: Number.NaN, gradient: Number.NaN, clipped: false, clippedLower: false };
    token({ ratio: ofRatio, logRatio: Math.log(ofRatio), advantage: ofAdvantage, logprob: ofLogprob }, outcome);
    return outcome;
  };
}

describe.each(everySpec.map((spec) => [nameOfLoss(spec), spec] as const))('a token of %s', (_, spec) => {
  const token = tokenOf(spec);

  it('is positively homogeneous in the advantage', () => {
    fc.assert(
      fc.property(ratio, advantage, logprob, fc.double({ min: 0.1, max: 10, noNaN: true }), (r, a, l, factor) => {
        const [once, scaled] = [token(r, a, l), token(r, factor * a, l)];
        expect(scaled.loss).toBeCloseTo(factor * once.loss, 9);
        expect(scaled.gradient).toBeCloseTo(factor * once.gradient, 9);
        expect([scaled.clipped, scaled.clippedLower]).toEqual([once.clipped, once.clippedLower]);
      }),
    );
  });

  it('has the gradient of its loss', () => {
    const byRatio = lossKind(spec).gradientOf === 'ratio';
    fc.assert(
      fc.property(ratio, advantage, logprob, (r, a, l) => {
        const h = 1e-6;
        const lossAt = (by: number) => (byRatio ? token(r * Math.exp(by), a, l) : token(r, a, l + by)).loss;
        const slopes = [(lossAt(0) - lossAt(-h)) / h, (lossAt(h) - lossAt(0)) / h] as const;
        expectBetween(token(r, a, l).gradient, slopes, 1e-4);
      }),
    );
  });
});

describe('a declaration', () => {
  it('says where the loss comes from, what it is and when to use it', () => {
    expect(lossTypes.filter((type, i) => lossTypes.indexOf(type) !== i)).toEqual([]);
    for (const { source, formula, use } of standard.losses)
      for (const text of [source, formula, use]) expect(text).toMatch(/\S/);
  });

  it('with the gradient by the log-prob has a ratio for every token', () => {
    for (const kind of everySpec.map(lossKind)) if (kind.gradientOf === 'logprob') expect(kind.ratio).toBe('token');
  });

  it('describes each of its settings', () => {
    for (const { schema } of standard.losses)
      for (const [name, setting] of Object.entries(schema.shape))
        if (name !== 'type') expect((setting as z.ZodType).description, name).toMatch(/\.$/);
  });
});

describe('a loss of the training protocol', () => {
  const named = everySpec.flatMap((spec) => {
    const { protocolLoss } = lossKind(spec);
    return protocolLoss === undefined ? [] : [{ spec, ...protocolLoss }];
  });

  it.each(named)('$name computes $spec', ({ spec, name, low, high }) => {
    const token = tokenOf(spec);
    const clip = (r: number) => Math.min(Math.max(r, low), high);
    const formulas = {
      ppo: (r: number, a: number) => -Math.min(r * a, clip(r) * a),
      cispo: (r: number, a: number, l: number) => -clip(r) * a * l,
    };
    fc.assert(
      fc.property(ratio, advantage, logprob, (r, a, l) => {
        expect(token(r, a, l).loss).toBeCloseTo(formulas[name](r, a, l), 9);
      }),
    );
  });

  it('is named by ppo-clip without a dual clip, with the bounds of the ratio', () => {
    expect(new Set(named.map(({ name }) => name))).toEqual(new Set(['ppo', 'cispo']));
    const clipped = { type: 'ppo-clip', clip: 0.2, clipHigh: 0.5, aggregate: 'token-mean' } as const;
    expect(lossKind(clipped).protocolLoss).toEqual({ name: 'ppo', low: 0.8, high: 1.5 });
    expect(lossKind({ ...clipped, dualClip: 3 }).protocolLoss).toBeUndefined();
  });
});
