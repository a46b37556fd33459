import type { Turn } from '@drmas/engine/nouns';
import { expect, it } from 'vitest';
import type { Learner } from '../run/learner.js';
import { adapted, KlCoefficients } from '../signals/kl-penalty.js';
import { settleKl } from './settle-kl.js';

it('averages the KL over the turns with a token, and adapts the coefficient to their number', () => {
  const controller = { type: 'adaptive', target: 0.4, horizon: 100 } as const;
  const learner = { name: 'solver', kl: { coefficient: 2, controller } } as unknown as Learner;
  const turns = [1, 2, 3].map((turn) => ({ agent: turn === 3 ? 'judge' : 'solver', turn }) as Turn);
  const [one, two, empty] = turns as [Turn, Turn, Turn];
  const signals = new Map([
    [one, { kl: [0.6] }],
    [two, { kl: [0.2, 0] }],
    [empty, { kl: [] }],
  ]);
  const update = { gradientNorm: 1, learningRate: 1, outcome: 'applied', agents: { solver: {}, judge: {} } } as never;
  const coefficients = new KlCoefficients();
  const settled = settleKl(coefficients, learner, update, turns, signals);
  const mean = (0.6 + 0.1) / 2;
  expect(settled).toMatchObject({ referenceKl: mean, klCoefficient: 2, agents: { solver: { referenceKl: mean } } });
  expect(settled.agents.judge).toEqual({});
  expect(coefficients.of(learner)).toBe(adapted(2, mean, 2, controller));
});
