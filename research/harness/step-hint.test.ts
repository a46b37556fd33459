import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { inflationAdvice } from '../../src/method/advantage.js';
import { questions } from '../questions/index.js';
import { jobsOf, type Part } from './declaration.js';
import { root } from './run-job.js';
import { costOf, isCovered, predictedCost, type Team, teamsOf } from './step-cost.js';
import { calibrationOf, flaggedArea, orderOf, passes, rangeOf } from './step-hint.js';
import { readResults } from './stored-result.js';

const curve = (...scores: number[]) => scores.map((score, i) => ({ step: 10 * i, score }));
const team = (own: number, ratio: number, isCensored = false): Team => ({
  name: `${own}`,
  rate: 1e-3,
  seen: { own, distance: own },
  cost: { ratio, isCensored },
});

describe('the cost in steps', () => {
  it('compares the first steps at half of the rise of the quick curve, on straight lines', () => {
    expect(costOf(curve(0, 0, 0.25, 0.75), curve(0, 0.5, 1, 1))).toEqual({ ratio: 25 / 10, isCensored: false });
    expect(costOf(curve(0.2, 0.6, 1), curve(0.2, 0.6, 1))).toEqual({ ratio: 1, isCensored: false });
    expect(costOf(curve(0, 1), curve(0, 0.5), 0.75)).toMatchObject({ ratio: 0.5 });
  });

  it('is at least what the run allows if the slow curve never gets there', () => {
    expect(costOf(curve(0, 0.1, 0.2), curve(0, 1, 1))).toEqual({ ratio: 20 / 5, isCensored: true });
  });

  it('is not known if the quick curve hardly rises', () => {
    expect(costOf(curve(0.5, 0.9), curve(0.5, 0.54))).toBeUndefined();
  });
});

describe('a prediction', () => {
  const others = Array.from({ length: 20 }, (_, i) => team(i, 1 + i));

  it('is the middle of the nine nearest teams, from their lowest to their highest', () => {
    expect(predictedCost(team(9.5, 1), others, 'own')).toMatchObject({ low: 7, high: 15 });
    expect(predictedCost(team(-1, 1), others, 'own')).toEqual({ low: 1, middle: 5, high: 9 });
  });

  it('has no upper end if one of them is censored, and then covers a censored cost', () => {
    const interval = predictedCost(team(-1, 1), [...others.slice(1), team(0, 2, true)], 'own');
    expect(interval).toEqual({ low: 2, middle: 6, high: Number.POSITIVE_INFINITY });
    expect(isCovered({ ratio: 3, isCensored: true }, interval)).toBe(true);
    expect(isCovered({ ratio: 3, isCensored: true }, { low: 1, middle: 2, high: 4 })).toBe(false);
    expect(isCovered({ ratio: 3, isCensored: false }, { low: 1, middle: 2, high: 4 })).toBe(true);
  });

  it('has an order over the pairs that censoring leaves known', () => {
    expect(orderOf(others, 'own')).toBe(1);
    expect(orderOf([team(2, 1), team(1, 2)], 'own')).toBe(-1);
    expect(orderOf([team(1, 2), team(2, 1, true)], 'own')).toBe(0); // no pair is known
    expect(orderOf([team(1, 2), team(2, 3, true)], 'own')).toBe(1);
  });

  it('passes with a narrow interval that covers eight of ten', () => {
    const known = { by: 'own', order: 1, coverageOfRates: 0 } as const;
    const good = { ...known, coverage: 0.75, width: 3.9, coverageOfDose: 0.8 };
    expect(passes(good)).toBe(true);
    const bad = [{ coverage: 0.95 }, { coverage: 0.6 }, { width: Number.POSITIVE_INFINITY }, { coverageOfDose: 0.6 }];
    for (const one of bad) expect(passes({ ...good, ...one })).toBe(false);
  });
});

it('the hint quotes the range that the rule allows, with the numbers of the results', async () => {
  const part = questions.flatMap(({ parts }) => parts).find(({ id }) => id === 'blind-pairs') as Part;
  const teams = teamsOf([part], await readResults(join(root, 'research/results'), jobsOf(part)));
  expect(passes(calibrationOf({ blind: teams, dose: teams, rates: teams, left: [0, 0] }, 'own'))).toBe(false);
  expect(flaggedArea(teams, 'own').interval[0]).toBeGreaterThan(0.5);
  const flagged = rangeOf(teams.filter(({ seen }) => seen.own > 1));
  const others = rangeOf(teams.filter(({ seen }) => seen.own <= 1));
  const rates = [...new Set(teams.map(({ rate }) => rate))].sort().join(' and ');
  const calls = { share: 0.25, success: 0.1, overall: 0.8 };
  const run = { type: 'grpo', groupSize: 16 };
  const advice = inflationAdvice('fixer', { inflation: 3, ownShare: 0.3, calls }, run);
  const [low, middle, usual, most] = [flagged.low, flagged.middle, others.middle, others.high].map((x) => x.toFixed(1));
  expect(advice?.remedy).toContain(
    `In ${flagged.teams} toy teams with such a share, chosen from 120 random ones, at rates of ${rates}, grpo needed ${middle} times the steps of drmas to learn half of what drmas learns (median; the lowest tenth ${low} times, and ${flagged.never} teams did not get there). In ${others.teams} others it needed ${usual} times (nine in ten at most ${most}).`,
  );
  expect(inflationAdvice('fixer', { inflation: 3, calls }, run)?.remedy).not.toContain('toy teams');
});
