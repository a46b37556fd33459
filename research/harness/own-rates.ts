/** Ways of learning that are compared at rates of their own, which the other half of the seeds chooses. */
import { mean } from '@drmas/engine/math';
import {
  type Comparison,
  compare,
  curveScore,
  LARGEST_P,
  lastScore,
  type PartResults,
  scoreAt,
  slopeOf,
} from './analysis.js';
import type { OwnRates, Regime } from './declaration.js';
import { holm } from './p-values.js';
import type { TrainResult } from './stored-result.js';
import { type Figure, gainPoint } from './svg.js';
import { differs, exactText, gainText, slopeText, table } from './text.js';

type Arms = readonly [string, string];
type Score = (regime: Regime, run: TrainResult) => number;

/** A run at the rate that the seeds of the other parity choose for its arm. */
export interface ChosenRun {
  readonly seed: number;
  readonly rate: number;
  readonly run: TrainResult;
}

/** The runs of each arm at its cross-fitted rate, seed by seed. */
export type Fitted = Readonly<Record<string, readonly ChosenRun[]>>;

/**
 * Chooses the rates: on the odd seeds an arm has the rate with the highest mean of the whole curve over the even seeds,
 * and the reverse. The smaller rate wins a tie.
 * @returns undefined unless all runs of the part are there
 */
export function crossFitted(results: PartResults, own: OwnRates): Fitted | undefined {
  const regime = regimeOf(results);
  const { seeds } = results.part;
  const ascending = own.rates.toSorted((a, b) => a - b);
  const variantOf = (arm: string, rate: number) => results.variant(own.variantAt(arm, rate));
  const isWhole = (arm: string, rate: number) => results.runs(regime, variantOf(arm, rate)).length === seeds.length;
  if (own.arms.some((arm) => ascending.some((rate) => !isWhole(arm, rate)))) return undefined;

  const runOf = (arm: string, rate: number, seed: number) =>
    results.train(regime, variantOf(arm, rate), seed) as TrainResult;
  const chosenBy = (arm: string, parity: number): number => {
    const choosing = seeds.filter((seed) => seed % 2 === parity);
    const scores = ascending.map((rate) => mean(choosing.map((seed) => curveScore(regime, runOf(arm, rate, seed)))));
    return ascending[scores.indexOf(Math.max(...scores))] as number;
  };
  return Object.fromEntries(
    own.arms.map((arm) => {
      const [ofEven, ofOdd] = [chosenBy(arm, 1), chosenBy(arm, 0)];
      const chosen = seeds.map((seed): ChosenRun => {
        const rate = seed % 2 === 0 ? ofEven : ofOdd;
        return { seed, rate, run: runOf(arm, rate, seed) };
      });
      return [arm, chosen];
    }),
  );
}

/** The first arm minus the second over the seeds, each at its cross-fitted rate. */
export function fittedDifference(regime: Regime, fitted: Fitted, [one, other]: Arms, score: Score): Comparison {
  const scores = (arm: string) => (fitted[arm] ?? []).map(({ run }) => score(regime, run));
  const others = scores(other);
  return compare(scores(one).map((value, i) => value - (others[i] as number)));
}

/** The first arm minus the second over the whole curve, at one rate for both. */
export function differenceAt(results: PartResults, { variantAt }: OwnRates, [one, other]: Arms, rate: number) {
  const of = results.against(variantAt(other, rate));
  return of.comparison(regimeOf(of), of.variant(variantAt(one, rate)), curveScore);
}

/** The slope of a difference at equal rates on the logarithm of the rate, to base 10: one slope a seed. */
export function slopeOnRate(results: PartResults, { rates, variantAt }: OwnRates, [one, other]: Arms): Comparison {
  const points = rates.flatMap((rate) => {
    const of = results.against(variantAt(other, rate));
    const gains = of.gains(regimeOf(of), of.variant(variantAt(one, rate)), curveScore);
    return gains.map(({ seed, gain }) => ({ seed, x: Math.log10(rate), y: gain }));
  });
  const slopes = results.part.seeds.flatMap((seed) => {
    const ofSeed = points.filter((point) => point.seed === seed);
    return ofSeed.length < rates.length ? [] : (slopeOf(ofSeed) ?? []);
  });
  return compare(slopes, results.part.seeds.length);
}

const regimeOf = (results: PartResults): Regime => results.part.regimes[0] as Regime;

/** A primary comparison over the whole curve, each arm at its cross-fitted rate. */
export interface Claim {
  readonly pair: Arms;
  readonly whole: Comparison;
  /** The exact p of `whole`, adjusted by Holm over the primary comparisons. */
  readonly p: number;
  readonly verdict: 'higher' | 'lower' | 'equivalent' | 'no difference shown';
}

/** The primary comparisons. @returns undefined unless all runs of the part are there */
export function claimsOf(results: PartResults, own: OwnRates): Claim[] | undefined {
  const fitted = crossFitted(results, own);
  return fitted === undefined ? undefined : claimsOfFitted(regimeOf(results), fitted, own);
}

function claimsOfFitted(regime: Regime, fitted: Fitted, { primary, equivalent }: OwnRates): Claim[] {
  const wholes = primary.map((pair) => fittedDifference(regime, fitted, pair, curveScore));
  const adjusted = holm(wholes.map(({ p }) => p));
  return wholes.map((whole, i): Claim => {
    const [pair, p] = [primary[i] as Arms, adjusted[i] as number];
    const { low = Number.NaN, high = Number.NaN } = whole.interval ?? {};
    const isSame = pair.join() === equivalent.pair.join() && low >= -equivalent.within && high <= equivalent.within;
    return { pair, whole, p, verdict: isSame ? 'equivalent' : p > LARGEST_P ? 'no difference shown' : differs(whole) };
  });
}

/**
 * A primary comparison in words, with its p after Holm.
 * @throws RangeError if the plan does not declare it
 */
export function fittedText(results: PartResults, own: OwnRates, [one, other]: Arms): string {
  const claims = claimsOf(results, own);
  if (claims === undefined) return 'nothing yet';
  const claim = claims.find(({ pair }) => pair[0] === one && pair[1] === other);
  if (claim === undefined) throw new RangeError(`${results.part.id} does not compare ${one} with ${other}`);
  return `${gainText(claim.whole)} (by Holm ${exactText(claim.p)})`;
}

/** The claims of a part with own rates, its comparisons at equal rates and the scores of the arms, as Markdown. */
export function ownRatesText(results: PartResults, own: OwnRates): string[] {
  const fitted = crossFitted(results, own);
  /** The plans claim nothing before all runs are there, however many pairs there are. */
  const shown = (comparison: Comparison): Comparison =>
    fitted === undefined ? { ...comparison, verdict: 'so far' } : comparison;
  const named = own.primary.map((pair) => ({ pair, name: pairName(pair) }));
  const equalRates = own.rates.map((rate) => [
    String(rate),
    ...named.map(({ pair }) => gainText(shown(differenceAt(results, own, pair, rate)))),
  ]);
  const slopes = named.map(({ pair }) => slopeText(shown(slopeOnRate(results, own, pair))));
  return [
    fitted === undefined
      ? 'When all runs are there, each arm gets its rate and this page gets the comparisons that the plan declares.'
      : claimsTable(regimeOf(results), fitted, own),
    'At equal rates, of the whole curve, not adjusted; the slope is for ten times the rate:',
    table(['rate', ...named.map(({ name }) => name)], [...equalRates, ['slope', ...slopes]]),
    armsTable(results, own),
  ];
}

const pairName = ([one, other]: Arms) => `\`${one}\` minus \`${other}\``;

/** One row a primary comparison. */
function claimsTable(regime: Regime, fitted: Fitted, own: OwnRates): string {
  const rates = (arm: string) =>
    [1, 0].map((parity) => fitted[arm]?.find(({ seed }) => seed % 2 === parity)?.rate).join(' and ');
  const rows = claimsOfFitted(regime, fitted, own).map(({ pair, whole, p, verdict }) => [
    pairName(pair),
    pair.map(rates).join('; '),
    gainText(whole),
    `${whole.better} of ${whole.pairs}`,
    exactText(p),
    verdict,
    gainText(fittedDifference(regime, fitted, pair, lastScore)),
  ]);
  const head = ['arms', 'rates on odd and even seeds', 'whole curve', 'better in', 'p after Holm', 'shown'];
  return table([...head, 'last evaluation'], rows);
}

/** A run that ends below its own start plus this share has not learnt. */
const LEARNT = 0.1;

/** One row an arm and rate: its scores, and the runs that have not learnt. */
function armsTable(results: PartResults, own: OwnRates): string {
  const regime = regimeOf(results);
  const level = (scores: readonly number[]) => (scores.length === 0 ? '-' : (100 * mean(scores)).toFixed(1));
  const rows = own.arms.flatMap((arm) =>
    own.rates.map((rate) => {
      const runs = results.runs(regime, results.variant(own.variantAt(arm, rate)));
      const starts = runs.map(({ curve: [first] }) => (first === undefined ? Number.NaN : scoreAt(regime, first)));
      const ends = runs.map((run) => lastScore(regime, run));
      const unlearnt = ends.filter((end, i) => end < (starts[i] as number) + LEARNT).length;
      return [
        `\`${arm}\``,
        String(rate),
        level(starts),
        level(runs.map((run) => curveScore(regime, run))),
        level(ends),
        `${unlearnt} of ${runs.length}`,
      ];
    }),
  );
  const below = `ends below its start plus ${100 * LEARNT} points`;
  return table(['arm', 'rate', 'start', 'whole curve', 'last evaluation', below], rows);
}

/**
 * The score over the whole curve at each rate, one series an arm, with the 95 % interval of its mean. The arms stand
 * side by side. A difference of two arms has a narrower interval, because its runs are pairs.
 */
export function ownRatesFigure(results: PartResults): Figure {
  const { arms, rates, variantAt } = results.part.ownRates as OwnRates;
  const regime = regimeOf(results);
  const pointsOf = (arm: string, shift: number) =>
    rates.flatMap((rate, at) => {
      const runs = results.runs(regime, results.variant(variantAt(arm, rate)));
      return runs.length === 0 ? [] : [gainPoint(at + shift, compare(runs.map((run) => curveScore(regime, run))))];
    });
  return {
    title: results.part.title,
    series: arms.map((arm, i) => ({ name: arm, line: true, points: pointsOf(arm, (i - (arms.length - 1) / 2) / 20) })),
    x: { label: 'learning rate', names: rates.map(String) },
    y: { label: 'score over the whole curve, %' },
  };
}
