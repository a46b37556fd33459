import { describe, expect, it } from 'vitest';
import type { Job, Part } from '../harness/declaration.js';
import { fakePart, fakeResults } from '../harness/fake-results.js';
import { ownRatesPlan, type Stored } from './declared.js';

const own = {
  arms: ['grpo', 'drmas', 'ema'],
  rates: [0.1],
  variantAt: (arm: string, rate: number) => `${arm}-at-${rate}`,
  primary: [
    ['drmas', 'grpo'],
    ['ema', 'drmas'],
  ],
  equivalent: { pair: ['ema', 'drmas'], within: 0.04 },
} as const;
const part: Part = {
  ...fakePart({ id: 'made-up-runs', variants: own.arms.map((arm) => own.variantAt(arm, 0.1)) }),
  ownRates: own,
};
const scores = { grpo: 0.5, drmas: 0.53, ema: 0.54 };
const storedWith = (score: (job: Job) => number | undefined) =>
  ({ questions: [{ id: 'made-up', asks: '', parts: [part] }], results: fakeResults(part, score) }) as unknown as Stored;
const all = storedWith(
  ({ variant, seed }) => scores[variant.id.replace('-at-0.1', '') as keyof typeof scores] + (seed % 3) / 1000,
);
const verdicts = (stored: Stored, ...[prediction]: [Parameters<typeof ownRatesPlan>[1]]) =>
  ownRatesPlan('made-up', prediction)
    .outcomes(stored)
    .map(({ verdict }) => verdict);

describe('a plan of estimators at their own rates', () => {
  it('holds where ranges and verdicts are those of the runs', () => {
    const right = { equal: { 0.1: [2, 4] }, primary: [{ range: [2, 4] }, { verdict: 'equivalent' }] } as const;
    expect(verdicts(all, right)).toEqual(['held', 'held', 'held']);
  });

  it('fails where a range or a verdict is another', () => {
    const wrong = {
      equal: { 0.1: [-4, 2] },
      primary: [
        { range: [2, 4], verdict: 'no difference shown' },
        { range: [2, 4], verdict: 'equivalent' },
      ],
    } as const;
    expect(verdicts(all, wrong)).toEqual(['**failed**', '**failed**', '**failed**']);
  });

  it('is open while runs are missing', () => {
    const some = storedWith(({ seed }) => (seed === 20 ? undefined : 0.5));
    expect(verdicts(some, { equal: {}, primary: [] })).toEqual(['open']);
  });
});
