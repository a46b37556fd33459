import { RandomStream } from '@drmas/engine/math';
import { describe, expect, it } from 'vitest';
import { ALPHA, type Compared, droppedAfter, judge, type Rule } from './verdict.js';

const rule: Rule = { margin: 0.02, pairs: 5, episodes: 1000 };
const STUDIES = 4000;
/** The error rate, and three standard errors of a simulated one. */
const BOUND = ALPHA + 3 * Math.sqrt((ALPHA * (1 - ALPHA)) / STUDIES);

const random = new RandomStream('shape', 1);
const binomial = (n: number, p: number) => {
  let solved = 0;
  for (let i = 0; i < n; i++) if (random.chance(p)) solved++;
  return solved / n;
};
const times = <T>(n: number, make: () => T): T[] => Array.from({ length: n }, make);
const share = (happens: () => boolean) => times(STUDIES, happens).filter(Boolean).length / STUDIES;

const compared = (name: string, differences: readonly number[], changes: Partial<Compared> = {}): Compared => ({
  ...{ name, differences, price: 50, trained: 10 },
  ...changes,
});
const whole = { price: 100, trained: 10 };
const claims = (differences: readonly number[], of: Rule = rule) =>
  judge([compared('a', differences)], whole, of).chosen === 'a';

describe('the rule that drops', () => {
  it('drops a variant that loses no more than the margin in at most 5 % of studies', () => {
    for (const spread of [0.002, 0.02, 0.2])
      for (const pairs of [3, 5, 10]) {
        const dropped = share(
          () =>
            droppedAfter(
              times(pairs, () => -rule.margin + spread * random.normal()),
              { ...rule, pairs },
            ) !== undefined,
        );
        expect(dropped, `${spread} ${pairs}`).toBeLessThanOrEqual(BOUND);
      }
  });

  it('drops a hopeless variant after few pairs, and none on one pair or after the last', () => {
    expect(droppedAfter([-0.5], rule)).toBeUndefined();
    expect(droppedAfter([-0.5, -0.52], rule)).toBe(2);
    expect(droppedAfter([-0.5, 0.1, -0.5, -0.5], rule)).toBeUndefined();
    expect(droppedAfter([0, 0, 0, 0, 0], rule)).toBeUndefined();
    expect(droppedAfter([-0.5, -0.51], { ...rule, pairs: 2 })).toBeUndefined();
  });

  it('gives the same answer whatever runs after it has fired', () => {
    const base = judge([compared('a', [-0.5, -0.52])], whole, rule);
    expect(judge([compared('a', [-0.5, -0.52, 0.9, 0.9, 0.9])], whole, rule)).toEqual(base);
    expect(base.verdicts[0]).toMatchObject({ verdict: 'dropped', pairs: 2, p: 1 });
  });
});

describe('the claim that a team is as good', () => {
  it('is false in at most 5 % of studies if the loss is the margin, with normal differences', () => {
    for (const spread of [0.002, 0.02])
      expect(share(() => claims(times(5, () => -rule.margin + spread * random.normal())))).toBeLessThanOrEqual(BOUND);
  });

  const few = 'is false in at most 5 % of studies if the scores are few episodes, near 1: %d episodes, %d pairs';
  const sizes = [
    [20, 5],
    [64, 3],
    [64, 5],
  ] as const;
  const larger = [
    [192, 10],
    [256, 5],
    [256, 10],
  ] as const; // millions of drawn episodes
  it.each(sizes)(few, fewEpisodes);
  it.each(larger)(few, { tags: 'verify' }, fewEpisodes);

  function fewEpisodes(episodes: number, pairs: number): void {
    const of = { ...rule, episodes, pairs };
    const differences = () => times(pairs, () => binomial(episodes, 1 - rule.margin) - 1);
    expect(share(() => claims(differences(), of))).toBeLessThanOrEqual(BOUND);
  }

  it('is false for any of several variants in at most 5 % of studies', () => {
    const wrong = share(() => {
      const variants = times(6, () =>
        compared(
          'a',
          times(5, () => -rule.margin + 0.01 * random.normal()),
        ),
      );
      return judge(variants, whole, rule).chosen !== undefined;
    });
    expect(wrong).toBeLessThanOrEqual(BOUND);
  });

  it('is not made from too few episodes, or if a pair is missing', () => {
    expect(claims([0, 0, 0, 0, 0])).toBe(true);
    expect(claims([0, 0, 0, 0, 0], { ...rule, episodes: 20 })).toBe(false);
    expect(claims([0, 0, 0, 0])).toBe(false);
  });
});

describe('the choice', () => {
  const good = [0, 0.001, 0, -0.001, 0];
  const chosen = (...changes: Partial<Compared>[]) =>
    judge(
      changes.map((change, i) => compared(`${i}`, good, change)),
      whole,
      rule,
    ).chosen;

  it('is the cheapest, and at the same price the team with fewer trained parameters', () => {
    expect(chosen({ price: 60 }, { price: 40 }, { price: 50 })).toBe('1');
    expect(chosen({ price: 40, trained: 10 }, { price: 40, trained: 5 })).toBe('1');
    expect(chosen({ price: 101, trained: 5 })).toBe('0');
  });

  it('is never a team that is no cheaper than the whole one', () => {
    expect(chosen({ price: 99 })).toBeUndefined();
    expect(chosen({ price: 130, trained: 1 })).toBeUndefined();
    expect(chosen({ price: Number.NaN, trained: Number.NaN })).toBeUndefined();
  });
});
