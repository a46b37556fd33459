import { klEstimator } from '@drmas/engine/internal/loss/kl';
import type { KlKind } from '@drmas/engine/loss';
import type { Turn } from '@drmas/engine/nouns';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { golden } from '../../../../test/goldens.js';
import { tinyRecipe } from '../../../../test/support/tiny-run.js';
import { openEstimator } from '../../advantage/estimators/index.js';
import { stepAdvantages } from '../advantages/advantages.js';
import { adapted, type Held, KlCoefficients, meanKl, tokenKl } from './kl-penalty.js';
import { referenceKl } from './reference-kl.js';

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

  it('stays above 0, however many turns a step has', () => {
    expect(adapted(0.1, 0, 1024, { target: 0.05, horizon: 100 })).toBe(0.05);
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

  it('is kept in the order of the names, whichever policy was updated first', () => {
    const kl = { coefficient: 1, in: 'loss', controller: { type: 'adaptive', target: 1 } } as const;
    const { policies } = tinyRecipe({ policies: { solver: { kl }, verifier: { kl } } });
    const keptAfter = (...names: readonly string[]) => {
      const coefficients = new KlCoefficients();
      for (const name of names) coefficients.observe({ name, kl: policies[name]?.kl }, 2, 5);
      return JSON.stringify(coefficients.state);
    };
    expect(keptAfter('verifier', 'solver')).toBe(keptAfter('solver', 'verifier'));
  });

  it('gives way to a fixed one with which a run resumes', () => {
    const { policies } = tinyRecipe({ policies: { solver: { kl: { coefficient: 5, in: 'loss' } } } });
    const resumed = new KlCoefficients({ solver: 0.25 });
    expect(resumed.of({ name: 'solver', kl: policies.solver?.kl })).toBe(5);
  });
});

/** Log-probs of all tokens. */
const logprobsOf = (logits: readonly number[]) => {
  const norm = Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit), 0));
  return logits.map((logit) => logit - norm);
};

describe('distillation from a teacher', () => {
  it('is the policy gradient of the reverse KL, in expectation over the tokens', () => {
    const logits = fc.array(fc.double({ min: -3, max: 3, noNaN: true }), { minLength: 5, maxLength: 5 });
    fc.assert(
      fc.property(logits, logits, (student, teacher) => {
        const [logprobs, others] = [logprobsOf(student), logprobsOf(teacher)];
        // One response of one token for each token of the vocabulary; the gradient of its log-prob is onehot - p.
        const advantages = logprobs.map(
          (logprob, a) => -(tokenKl([logprob], Float32Array.of(others[a] ?? 0), 'k1')[0] ?? 0),
        );
        const p = logprobs.map(Math.exp);
        const klOf = (at: readonly number[]) =>
          logprobsOf(at).reduce((sum, logprob, a) => sum + Math.exp(logprob) * (logprob - (others[a] ?? 0)), 0);
        for (let i = 0; i < 5; i++) {
          const gradient = advantages.reduce(
            (sum, advantage, a) => sum + (p[a] ?? 0) * advantage * (Number(a === i) - (p[i] ?? 0)),
            0,
          );
          const moved = (by: number) => student.map((logit, j) => (i === j ? logit + by : logit));
          const slope = (klOf(moved(1e-5)) - klOf(moved(-1e-5))) / 2e-5;
          expect(gradient).toBeCloseTo(-slope, 5);
        }
      }),
    );
  });

  it('adds to the advantages of tokens, beside the rewards of an agent or instead of them', () => {
    const turn = (earned: number, sample: number) => ({ sample, team: earned });
    const groups = [
      {
        task: { id: 'a', data: {} },
        episodes: [turn(1, 0), turn(0, 1)].map(({ sample, team }) => ({
          task: { id: 'a', data: {} },
          sample,
          outcome: {},
          score: { team, agents: {}, parts: {} },
          turns: [
            { agent: 'solver', turn: 0, messages: [], prompt: [0], response: [1, 2], penalty: 0 } as unknown as Turn,
          ],
        })),
      },
    ];
    const [first] = groups[0]?.episodes[0]?.turns ?? [];
    const signals = new Map([[first as Turn, { tokenAdvantages: [0.5, -2] }]]);
    const estimator = openEstimator({ type: 'dr-grpo' });
    const of = (rewardWeight: number) =>
      stepAdvantages({ estimator, agents: { solver: { rewardWeight } } }, groups, signals).turns.map(
        (each) => each.advantage,
      );
    expect(of(1)).toEqual([[1, -1.5], -0.5]);
    expect(of(0)).toEqual([[0.5, -2], -0]);
  });
});

describe('the KL in each place', () => {
  const places = ['loss', 'reward', 'advantage'] as const;
  const kinds: readonly (KlKind | undefined)[] = [undefined, 'k1', 'k2', 'k3', 'abs'];
  const settingsOf = (place: (typeof places)[number], kind?: KlKind) => {
    const { policies, advantage } = tinyRecipe({ policies: { solver: { kl: { coefficient: 1, in: place, kind } } } });
    const checked = [...(referenceKl.checks?.({ estimator: openEstimator(advantage), policies }, {} as never) ?? [])];
    return { kind: policies.solver?.kl?.kind, refused: checked.filter(({ test }) => !test).map(({ path }) => path) };
  };

  /** The mean step of an update without other rewards, by the gradient of the log-probs of the sampled tokens. */
  const stepOf = (
    place: (typeof places)[number],
    kind: KlKind,
    logits: readonly number[],
    others: readonly number[],
  ) => {
    const logprobs = logprobsOf(logits);
    const { value, derivative } = klEstimator(kind);
    const weights = logprobs.map((logprob, a) => (place === 'loss' ? derivative : value)(logprob - (others[a] ?? 0)));
    const p = logprobs.map(Math.exp);
    return p.map((pi, i) => -weights.reduce((sum, w, a) => sum + (p[a] ?? 0) * w * (Number(a === i) - pi), 0));
  };
  const klBetween = (logits: readonly number[], others: readonly number[]) =>
    logprobsOf(logits).reduce((sum, logprob, a) => sum + Math.exp(logprob) * (logprob - (others[a] ?? 0)), 0);

  const every = places.flatMap((place) => kinds.map((kind) => ({ place, kind })));
  // In the reward it is a warning, and no refusal: test/runs/settings-with-effect.test.ts.
  it.each(every)(
    'leads to the reference by default, and is refused as a wrong teacher: in the $place, kind $kind',
    ({ place, kind }) => {
      const settings = settingsOf(place, kind);
      const used = settings.kind as KlKind;
      const others = logprobsOf([0, 0.5, -0.5, 1, 0]);
      let logits: readonly number[] = [3, 0, 0.5, 0, -1];
      const before = klBetween(logits, others);
      for (let n = 0; n < 2000; n++) {
        const step = stepOf(place, used, logits, others);
        logits = logits.map((logit, i) => logit + 0.05 * (step[i] ?? 0));
      }
      const leads = klBetween(logits, others) < 0.1 * before;
      expect(leads).toBe(place === 'loss' ? used !== 'k1' : used === 'k1');
      expect(settings.refused).toEqual(place === 'advantage' && !leads ? ['policies.solver.kl.kind'] : []);
      if (kind === undefined) expect([used, leads]).toEqual([place === 'loss' ? 'k3' : 'k1', true]);
    },
  );
});
