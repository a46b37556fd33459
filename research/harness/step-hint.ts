/** The calibration of a hint in steps, and the rule by which it states a number: research/plans/hint.md. */
import { mean, median } from '@drmas/engine/math';
import { PartResults } from './analysis.js';
import { areaInterval, areaUnderCurve, resampledInterval } from './blind.js';
import type { Part } from './declaration.js';
import {
  type Cost,
  type Interval,
  isCovered,
  isFlagged,
  NEAREST,
  PREDICTORS,
  type Predictor,
  predictedCost,
  seenOf,
  sizeOf,
  type Team,
  teamsOf,
} from './step-cost.js';
import type { Results } from './stored-result.js';
import { table } from './text.js';
import { wholeRatios } from './waiting.js';

const NOMINAL = 0.8;
const TOLERANCE = 0.1;
const WIDEST = 4;
const LEAST_ELSEWHERE = 0.7;

/** The parts that the plan names. */
const BLIND = 'blind-pairs';
const DOSE = ['mismatch', 'frequency', 'scale', 'drift'];
const TIMED = [
  { parts: ['catch-up-4', 'catch-up-1', 'catch-up-16'], probed: 'mismatch', regime: 'escalation' },
  { parts: ['repair-timed'], probed: 'drift', regime: 'repair-25' },
];
const STORIES = { part: 'stories-runs', ownShare: 0.995 };

type PartOf = (id: string) => Part;

/** The teams of the plan. */
export interface Teams {
  readonly blind: readonly Team[];
  readonly dose: readonly Team[];
  /** Known teams at other rates. */
  readonly rates: readonly Team[];
  /** The number of teams of `blind` and `dose` in which Dr. MAS does not rise. */
  readonly left: readonly [number, number];
}

/** @param rise The share of Dr. MAS's rise at which steps are compared; the stored times to 90 % do not depend on it */
export function hintTeams(partOf: PartOf, results: Results, rise = 0.5): Teams {
  const blind = teamsOf([partOf(BLIND)], results, rise);
  const doses = DOSE.map(partOf);
  const dose = teamsOf(doses, results, rise);
  const declared = new Set(doses.flatMap(({ regimes }) => regimes.map(({ id }) => id))).size;
  return {
    blind,
    dose,
    rates: [...timed(partOf, results), ...storiesAt(partOf(STORIES.part), results, rise)],
    left: [partOf(BLIND).regimes.length - blind.length, declared - dose.length],
  };
}

function timed(partOf: PartOf, results: Results): Team[] {
  return TIMED.flatMap(({ parts, probed, regime }) => {
    const seen = seenOf(partOf(probed), regime, results);
    return parts.flatMap((id) =>
      wholeRatios(new PartResults(partOf(id), results), 'grpo', 'drmas').map(
        ({ rate, ratio }): Team => ({
          name: `${id} at ${rate}`,
          rate,
          seen,
          cost: { ratio: Math.exp(ratio.mean), isCensored: false },
        }),
      ),
    );
  });
}

function storiesAt(part: Part, results: Results, rise: number): Team[] {
  const own = 1 / STORIES.ownShare - 1;
  return (part.ownRates?.rates ?? []).flatMap((rate) => {
    const ids = ['grpo', 'drmas'].map((arm) => part.ownRates?.variantAt(arm, rate) ?? arm);
    return teamsOf([part], results, rise, ids as [string, string]).map((team) => ({
      ...team,
      name: `stories at ${rate}`,
      rate,
      seen: { own, distance: own },
    }));
  });
}

/** How well a predictor tells costs that it has not seen. */
export interface Calibration {
  readonly by: Predictor;
  readonly coverage: number;
  /** The median over the flagged teams of an interval's highest over lowest. */
  readonly width: number;
  readonly order: number;
  readonly coverageOfDose: number;
  readonly coverageOfRates: number;
}

const shareCovered = (cases: readonly { readonly cost: Cost; readonly interval: Interval }[]) =>
  mean(cases.map(({ cost, interval }) => Number(isCovered(cost, interval))));

/** Each team, with the interval that the other teams predict. */
const leftOut = (teams: readonly Team[], by: Predictor) =>
  teams.map((team) => {
    const others = teams.filter((other) => other !== team);
    return { team, cost: team.cost, interval: predictedCost(team, others, by) };
  });

export function calibrationOf({ blind, dose, rates }: Teams, by: Predictor): Calibration {
  const ofBlind = leftOut(blind, by);
  const of = (teams: readonly Team[]) =>
    shareCovered(teams.map((team) => ({ cost: team.cost, interval: predictedCost(team, blind, by) })));
  const flagged = ofBlind.filter(({ team }) => isFlagged(team, by));
  return {
    by,
    coverage: shareCovered(ofBlind),
    width: median(flagged.map(({ interval: { low, high } }) => high / low)),
    order: orderOf(blind, by),
    coverageOfDose: of(dose),
    coverageOfRates: of(rates),
  };
}

/** 2C - 1, with Harrell's C over the pairs whose order the censoring leaves known (Harrell et al. 1982); 0 without. */
export function orderOf(teams: readonly Team[], by: Predictor): number {
  const value = PREDICTORS[by];
  const signs = teams.flatMap((less) =>
    less.cost.isCensored
      ? []
      : teams
          .filter(({ cost }) => cost.ratio > less.cost.ratio || (cost.isCensored && cost.ratio === less.cost.ratio))
          .map((more) => Math.sign(value(more) - value(less))),
  );
  return mean(signs);
}

/** The 95 % interval of an order, over resamples of the teams. */
const orderInterval = (teams: readonly Team[], by: Predictor) =>
  resampledInterval(teams, (resample) => orderOf(resample, by), 'a hint in steps');

/** Whether a predictor passes the plan's rule for a number. */
export const passes = ({ coverage, width, coverageOfDose }: Calibration): boolean =>
  Math.abs(coverage - NOMINAL) <= TOLERANCE && width <= WIDEST && coverageOfDose >= LEAST_ELSEWHERE;

/** The costs of some teams: the 10 % and 90 % points and the median, and the number that never got there. */
export interface Range extends Interval {
  readonly teams: number;
  readonly never: number;
}

export function rangeOf(teams: readonly Team[]): Range {
  const costs = teams.map(({ cost }) => sizeOf(cost)).sort((a, b) => a - b);
  const at = (share: number) => costs[Math.round(share * (costs.length - 1))] ?? Number.NaN;
  const never = costs.filter((cost) => cost === Number.POSITIVE_INFINITY).length;
  return { low: at(0.1), middle: median(costs), high: at(0.9), teams: costs.length, never };
}

/** The area under the curve with which the hint tells costs apart, with its interval: flagged teams cost more. */
export function flaggedArea(teams: readonly Team[], by: Predictor) {
  const cases = teams.map((team) => ({ value: -sizeOf(team.cost), isPositive: isFlagged(team, by) }));
  return { area: areaUnderCurve(cases), interval: areaInterval(cases) };
}

const decimals = (value: number, digits = 2) => (value === Number.POSITIVE_INFINITY ? 'no end' : value.toFixed(digits));
const percentOf = (share: number) => `${(100 * share).toFixed(0)} %`;
const rangeText = ([low, high]: readonly [number, number]) => `[${decimals(low)}, ${decimals(high)}]`;

const isWhole = ({ blind, dose, rates }: Teams) => blind.length > NEAREST && dose.length > 0 && rates.length > 0;

/** One row a predictor: how well it tells costs that it has not seen, and whether it passes the plan's rule. */
export function calibrationsText(teams: Teams): string {
  if (!isWhole(teams)) return 'nothing yet';
  const rows = (Object.keys(PREDICTORS) as Predictor[]).map((by) => {
    const one = calibrationOf(teams, by);
    return [
      `\`${by}\``,
      `${decimals(one.order)} ${rangeText(orderInterval(teams.blind, by))}`,
      percentOf(one.coverage),
      decimals(one.width, 1),
      percentOf(one.coverageOfDose),
      percentOf(one.coverageOfRates),
      passes(one) ? 'yes' : 'no',
    ];
  });
  const head = ['predictor', 'order', 'coverage', 'median width, flagged', 'coverage in `dose`', 'at other rates'];
  return table([...head, 'a number'], rows);
}

/** One row for the flagged teams of `blind` and one for the others, at each level. */
export function rangesText(levels: readonly { readonly rise: number; readonly teams: Teams }[]): string {
  if (levels.some(({ teams }) => !isWhole(teams))) return 'nothing yet';
  const rows = levels.flatMap(({ rise, teams: { blind } }) =>
    [true, false].map((flagged) => {
      const { low, middle, high, teams, never } = rangeOf(blind.filter((team) => isFlagged(team, 'own') === flagged));
      const named = `${percentOf(rise)} of the rise, own share ${flagged ? 'below' : 'above'} one half`;
      return [named, `${teams}`, ...[low, middle, high].map((value) => decimals(value)), `${never}`];
    }),
  );
  return table(['', 'teams', '10 % point', 'median', '90 % point', 'GRPO never gets there'], rows);
}

/** One row a cell at another rate: its cost, and what `own` predicts for it. */
export function ratesText(teams: Teams): string {
  if (!isWhole(teams)) return 'nothing yet';
  const rows = teams.rates.map((team) => {
    const interval = predictedCost(team, teams.blind, 'own');
    const { ratio, isCensored } = team.cost;
    const predicted = `${decimals(interval.middle)} [${decimals(interval.low)}, ${decimals(interval.high)}]`;
    return [
      team.name,
      `${isCensored ? 'above ' : ''}${decimals(ratio)}`,
      predicted,
      isCovered(team.cost, interval) ? 'yes' : 'no',
    ];
  });
  return table(['team and rate', 'cost', 'predicted by `own`', 'covered'], rows);
}

/** A number for a sentence. @throws Error for a name that is none */
export function stepFact(teams: Teams, name: string): string {
  if (!isWhole(teams)) return 'nothing yet';
  const intervals = leftOut(teams.blind, 'own').flatMap(({ team, interval }) =>
    isFlagged(team, 'own') ? interval : [],
  );
  const ended = intervals.filter(({ high }) => high !== Number.POSITIVE_INFINITY);
  const flagged = rangeOf(teams.blind.filter((team) => isFlagged(team, 'own')));
  const others = rangeOf(teams.blind.filter((team) => !isFlagged(team, 'own')));
  if (name === 'area') {
    const { area, interval } = flaggedArea(teams.blind, 'own');
    return `${decimals(area)} ${rangeText(interval)}`;
  }
  const facts: Readonly<Record<string, string>> = {
    left: teams.left.join(' and '),
    open: `${intervals.length - ended.length} of ${intervals.length}`,
    ended: ended.length === 0 ? 'none' : decimals(median(ended.map(({ low, high }) => high / low)), 1),
    censored: `${flagged.never} of ${flagged.teams}`,
    censoredDose: `${teams.dose.filter(({ cost }) => cost.isCensored).length} of ${teams.dose.length}`,
    flagged: decimals(flagged.middle, 1),
    others: decimals(others.middle, 1),
    most: decimals(others.high, 1),
  };
  const fact = facts[name];
  if (fact === undefined) throw new Error(`the hint in steps has no number ${name}`);
  return fact;
}
