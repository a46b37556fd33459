import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { golden } from '../../../../test/goldens.js';
import { tinyRecipe } from '../../../../test/support/tiny-run.js';
import { adapted, type Held, KlCoefficients, meanKl, tokenKl } from './kl-penalty.js';

interface Case {
  readonly id: string;
  readonly params: {
    readonly penalty: 'kl' | 'abs' | 'mse' | 'low_var_kl';
    readonly controller: 'fixed' | 'adaptive';
    readonly coef: number;
    readonly targetKl: number;
    readonly horizon: number;
  };
  readonly turns: readonly { length: number; reward: number; oldLogprobs: number[]; refLogprobs: number[] }[];
  readonly tokenRewards: readonly (readonly number[])[];
  readonly meanKl: number;
  readonly coefAfter: number;
}

const kinds = { kl: 'k1', abs: 'abs', mse: 'k2', low_var_kl: 'k3' } as const;

describe('the KL in the reward, as in the paper', () => {
  it('has the same token penalties, averages and coefficients', () => {
    const { cases } = golden<{ cases: Case[] }>('advantages/kl_in_reward');
    for (const { id, params, turns, tokenRewards, meanKl: expected, coefAfter } of cases) {
      const tokens = turns.map(({ oldLogprobs, refLogprobs }) =>
        // In double precision, as the original was run.
        tokenKl(oldLogprobs, refLogprobs as unknown as Float32Array, kinds[params.penalty]),
      );
      tokens.forEach((row, i) => {
        const rewards = row.map((kl, t) => (t === row.length - 1 ? (turns[i]?.reward ?? 0) : 0) - params.coef * kl);
        rewards.forEach((reward, t) => {
          expect(reward, id).toBeCloseTo(tokenRewards[i]?.[t] as number, 9);
        });
      });
      expect(meanKl(tokens), id).toBeCloseTo(expected, 6);
      const { targetKl: target, horizon } = params;
      const after =
        params.controller === 'fixed'
          ? params.coef
          : adapted(params.coef, meanKl(tokens), turns.length, { target, horizon });
      expect(after, id).toBeCloseTo(coefAfter, 9);
    }
  });
});

describe('an adaptive coefficient', () => {
  it('rises above the target and falls below it, by a bounded share', () => {
    const property = fc.property(
      fc.double({ min: 1e-3, max: 10, noNaN: true }),
      fc.double({ min: -1, max: 10, noNaN: true }),
      fc.double({ min: 1e-2, max: 5, noNaN: true }),
      fc.integer({ min: 1, max: 100 }),
      (coefficient, kl, target, turns) => {
        const after = adapted(coefficient, kl, turns, { target, horizon: 1000 });
        expect(Math.sign(after - coefficient) * Math.sign(kl - target)).toBeGreaterThanOrEqual(0);
        expect(Math.abs(after / coefficient - 1)).toBeLessThanOrEqual((0.2 * turns) / 1000 + 1e-12);
      },
    );
    fc.assert(property);
  });

  it('belongs to its policy and is kept in its state; a fixed coefficient stays', () => {
    const kl = { coefficient: 0.5, in: 'reward' } as const;
    const { policies } = tinyRecipe({
      policies: {
        solver: { kl: { ...kl, controller: { type: 'adaptive', target: 1, horizon: 10 } } },
        verifier: { kl },
      },
    });
    const [solver, verifier] = ['solver', 'verifier'].map((name) => ({ name, kl: policies[name]?.kl })) as [Held, Held];
    const coefficients = new KlCoefficients();
    for (const policy of [solver, verifier]) coefficients.observe(policy, 100, 5);
    expect(coefficients.of(solver)).toBeCloseTo(0.5 * 1.1, 12);
    expect(coefficients.of(verifier)).toBe(0.5);
    const again = new KlCoefficients(JSON.parse(JSON.stringify(coefficients.state)));
    expect(again.of(solver)).toBe(coefficients.of(solver));
    expect(again.of(verifier)).toBe(0.5);
  });
});
