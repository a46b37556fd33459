/** The blind test of the probe's rule: research/plans/blind.md. */
import { mean, RandomStream } from '@drmas/engine/math';
import {
  type Comparison,
  curveScore,
  HINTS,
  lastScore,
  PartResults,
  type Prediction,
  predictionOf,
} from './analysis.js';
import { PAIRS_FOR_A_CLAIM, type Part, type Regime } from './declaration.js';
import type { Results } from './stored-result.js';
import { type Figure, gainPoint } from './svg.js';
import { gainText, points, table } from './text.js';

export const BLIND = {
  title: 'Gain of Dr. MAS over GRPO in forty regimes, chosen from 120 drawn at random',
  file: 'blind.svg',
} as const;

/** The smallest mean gain that counts, as a share. */
const LEAST_GAIN = 0.02;
const FIFTHS = 5;
const A_FIFTH = 8;
const OF_A_KIND = 4;
const RESAMPLES = 10_000;
/** The least sensitivity and the least specificity at which the probe may say "will probably". */
const TRUSTED = 0.8;
/** An own share that rounds to 1. */
const WHOLE_SHARE = 0.995;

interface Candidate {
  readonly regime: Regime;
  readonly ownShare: number;
}

const fifthOf = (ownShare: number) => Math.min(FIFTHS - 1, Math.floor(FIFTHS * ownShare));

/**
 * The candidates of the blind test, in their order: in each fifth of the own share the first four of each recipe, then
 * the first of any, up to eight; then the first that are left, up to forty.
 */
export function chooseSpread(candidates: readonly Candidate[]): Regime[] {
  const chosen = new Set<Candidate>();
  const known = candidates.filter(({ ownShare }) => !Number.isNaN(ownShare));
  const take = (some: readonly Candidate[], most: number) => {
    for (const one of some.filter((candidate) => !chosen.has(candidate)).slice(0, Math.max(0, most))) chosen.add(one);
  };
  for (let fifth = 0; fifth < FIFTHS; fifth++) {
    const here = known.filter(({ ownShare }) => fifthOf(ownShare) === fifth);
    for (const recipe of new Set(here.map(({ regime }) => regime.recipe)))
      take(
        here.filter(({ regime }) => regime.recipe === recipe),
        OF_A_KIND,
      );
    take(here, A_FIFTH - here.filter((candidate) => chosen.has(candidate)).length);
  }
  take(known, FIFTHS * A_FIFTH - chosen.size);
  return candidates.filter((candidate) => chosen.has(candidate)).map(({ regime }) => regime);
}

/** A regime with its prediction, made before any training, and its result. */
interface Tested {
  readonly regime: Regime;
  readonly predicted: Prediction;
  /** The squared distance of the agent's mean reward from the team's success, over the variance of its rewards. */
  readonly mismatch: number;
  readonly gain: Comparison;
  readonly gains: boolean;
  readonly loses: boolean;
}

const predicted = (results: PartResults, regime: Regime): Prediction => {
  const [seed = Number.NaN] = results.part.probeSeeds ?? [];
  return predictionOf(regime.agent, results.probe(regime, seed));
};

/** The plan's second predictor, from the same probe as the first. */
function mismatchOf(results: PartResults, regime: Regime): number {
  const [seed = Number.NaN] = results.part.probeSeeds ?? [];
  const probe = results.probe(regime, seed);
  const { reward = Number.NaN, rewardStd = Number.NaN } = probe?.agents[regime.agent] ?? {};
  return (reward - (probe?.success ?? Number.NaN)) ** 2 / rewardStd ** 2;
}

/** The candidates of a part, with the own shares that its probes saw; NaN if a probe saw none. */
export const candidatesOf = (part: Part, results: Results): Candidate[] => {
  const of = new PartResults(part, results);
  return part.regimes.map((regime) => ({ regime, ownShare: predicted(of, regime).ownShare }));
};

function testedOf(part: Part, results: Results, score = curveScore): Tested[] {
  const of = new PartResults(part, results);
  const [other] = part.variants.filter(({ id }) => id !== part.baseline);
  if (other === undefined) throw new Error(`${part.id} has nothing to compare with its baseline`);
  return part.regimes.map((regime) => {
    const gain = of.comparison(regime, other, score);
    return {
      regime,
      predicted: predicted(of, regime),
      mismatch: mismatchOf(of, regime),
      gain,
      gains: gain.verdict === 'higher' && gain.mean >= LEAST_GAIN,
      loses: gain.verdict === 'lower' && gain.mean <= -LEAST_GAIN,
    };
  });
}

/**
 * The probability that a positive case has a lower value than a negative one, with half for equal values: the area
 * under the ROC curve (Hanley and McNeil 1982). NaN if one side is empty.
 */
export function areaUnderCurve(cases: readonly { readonly value: number; readonly isPositive: boolean }[]): number {
  const [positive, negative] = [true, false].map((side) =>
    cases.filter(({ isPositive }) => isPositive === side).map(({ value }) => value),
  ) as [number[], number[]];
  const wins = positive.map((a) => mean(negative.map((b) => (a < b ? 1 : a === b ? 0.5 : 0))));
  return positive.length === 0 || negative.length === 0 ? Number.NaN : mean(wins);
}

/** The 95 % interval of the area under the curve. */
export const areaInterval = (cases: Parameters<typeof areaUnderCurve>[0]) =>
  resampledInterval(cases, areaUnderCurve, 'blind test');

/**
 * The 95 % interval of a statistic by the percentile bootstrap over cases. Resamples without a value are left out.
 * @param stream The name of the random numbers
 */
export function resampledInterval<Case>(
  cases: readonly Case[],
  statistic: (resample: readonly Case[]) => number,
  stream: string,
): readonly [number, number] {
  const random = new RandomStream(stream);
  const values = Array.from({ length: RESAMPLES }, () =>
    statistic(cases.map(() => cases[random.integer(0, cases.length - 1)] as Case)),
  )
    .filter((value) => !Number.isNaN(value))
    .sort((a, b) => a - b);
  const at = (share: number) => values[Math.round(share * (values.length - 1))] ?? Number.NaN;
  return [at(0.025), at(0.975)];
}

/** Wilson's 95 % interval of a share (Wilson 1927). */
export function wilson(hits: number, all: number): readonly [number, number] {
  const z = 1.959964;
  const [p, n] = [hits / all, all];
  const centre = (p + z ** 2 / (2 * n)) / (1 + z ** 2 / n);
  const half = (z / (1 + z ** 2 / n)) * Math.sqrt((p * (1 - p)) / n + z ** 2 / (4 * n ** 2));
  return [centre - half, centre + half];
}

/** Spearman's rank correlation, with mean ranks for ties. */
export function rankCorrelation(a: readonly number[], b: readonly number[]): number {
  const ranks = (values: readonly number[]) =>
    values.map((value) => {
      const below = values.filter((other) => other < value).length;
      return below + (values.filter((other) => other === value).length - 1) / 2;
    });
  const [x, y] = [ranks(a), ranks(b)];
  const middle = (a.length - 1) / 2;
  const product = (u: readonly number[], v: readonly number[]) =>
    u.reduce((sum, value, i) => sum + (value - middle) * ((v[i] as number) - middle), 0);
  return product(x, y) / Math.sqrt(product(x, x) * product(y, y));
}

const decimals = (value: number) => (Number.isNaN(value) ? 'not known' : value.toFixed(2));
const range = ([low, high]: readonly [number, number]) => `[${decimals(low)}, ${decimals(high)}]`;
const shareText = (hits: number, all: number) =>
  all === 0 ? 'no regime' : `${decimals(hits / all)} ${range(wilson(hits, all))} (${hits} of ${all})`;

/** Minus the rank correlation of own share and mean gain: 1 if the gain rises as the own share falls. */
const orderText = (tested: readonly Tested[]) =>
  decimals(
    -rankCorrelation(
      tested.map(({ predicted }) => predicted.ownShare),
      tested.map(({ gain }) => gain.mean),
    ),
  );

const isComplete = (tested: readonly Tested[]) => tested.every(({ gain }) => gain.pairs >= PAIRS_FOR_A_CLAIM);

/** The regimes that gain, those of them that the hint finds, the other regimes, and those that it is silent about. */
function countsOf(tested: readonly Tested[]) {
  const hinted = ({ predicted }: Tested) => HINTS.ownShare.holds(predicted);
  const [gaining, others] = [tested.filter(({ gains }) => gains), tested.filter(({ gains }) => !gains)];
  return {
    gaining: gaining.length,
    found: gaining.filter(hinted).length,
    others: others.length,
    silent: others.filter((one) => !hinted(one)).length,
  };
}

/** A possible predictor of a gain, as a number that is low if it predicts one. */
const PREDICTORS = {
  ownShare: ({ predicted }: Tested) => predicted.ownShare,
  inflation: ({ predicted }: Tested) => -predicted.inflation,
  mismatch: ({ mismatch }: Tested) => -mismatch,
} as const;

/** The AUC of a predictor, with its interval. */
function areaOf(tested: readonly Tested[], by: keyof typeof PREDICTORS) {
  const cases = tested
    .map((one) => ({ value: PREDICTORS[by](one), isPositive: one.gains }))
    .filter(({ value }) => !Number.isNaN(value));
  return { area: areaUnderCurve(cases), interval: areaInterval(cases) };
}

function areaText(tested: readonly Tested[], by: keyof typeof PREDICTORS): string {
  const { area, interval } = areaOf(tested, by);
  return `${decimals(area)} ${range(interval)}`;
}

/** The share of regimes that gain, of those whose own share lies in these fifths, with both counts. */
function gainsInFifths(tested: readonly Tested[], first: number, last: number) {
  const here = tested.filter(({ predicted }) => {
    const fifth = fifthOf(predicted.ownShare);
    return fifth >= first && fifth <= last;
  });
  return { gaining: here.filter(({ gains }) => gains).length, of: here.length };
}

/** The numbers of the plan's predictions; undefined before all pairs are there. */
export function blindPredictions(part: Part, results: Results) {
  const tested = testedOf(part, results);
  if (!isComplete(tested)) return undefined;
  return {
    ownShare: areaOf(tested, 'ownShare'),
    inflation: areaOf(tested, 'inflation'),
    lowest: gainsInFifths(tested, 0, 1),
    highest: gainsInFifths(tested, 3, 4),
    atHalf: countsOf(tested),
  };
}

/** Whether statistics of the team and of the agent are nearly the same numbers, so that no difference can be seen. */
const hasWholeShare = ({ predicted }: Tested) => predicted.ownShare >= WHOLE_SHARE;

/** A number of the whole test, for a sentence. @throws Error for a name that is none */
export function blindFact(part: Part, results: Results, name: string): string {
  const tested = testedOf(part, results);
  if (!isComplete(tested)) return 'nothing yet';
  const { gaining, found, others, silent } = countsOf(tested);
  const inFifths = (first: number, last: number) => {
    const { gaining: high, of } = gainsInFifths(tested, first, last);
    return `${high} of ${of}`;
  };
  const below = tested.filter((one) => !hasWholeShare(one));
  const facts: Readonly<Record<string, () => string>> = {
    area: () => areaText(tested, 'ownShare'),
    inflation: () => areaText(tested, 'inflation'),
    mismatch: () => areaText(tested, 'mismatch'),
    shareOne: () => `${tested.filter(hasWholeShare).length} of ${tested.length}`,
    areaBelowOne: () => areaText(below, 'ownShare'),
    mismatchBelowOne: () => areaText(below, 'mismatch'),
    gains: () => `${gaining} of ${tested.length}`,
    loses: () => `${tested.filter(({ loses }) => loses).length}`,
    found: () => `${found} of ${gaining}`,
    vain: () => `${others - silent} of ${others}`,
    lowest: () => inFifths(0, 1),
    highest: () => inFifths(3, 4),
  };
  const fact = facts[name];
  if (fact === undefined) throw new Error(`the blind test has no number ${name}`);
  return fact();
}

/**
 * The share of all drawn regimes that would gain, if those that were not trained gain as often as those that were, in
 * each fifth of the own share. Regimes whose share is 1 are a class of their own.
 * @param draw The part with the probes of all drawn regimes
 */
export function gainingAtRandom(part: Part, draw: Part, results: Results): string {
  const tested = testedOf(part, results);
  if (!isComplete(tested)) return 'nothing yet';
  const classOf = (ownShare: number) => (ownShare >= WHOLE_SHARE ? FIFTHS : fifthOf(ownShare));
  const all = candidatesOf(draw, results).filter(({ ownShare }) => !Number.isNaN(ownShare));
  const rates = Array.from({ length: FIFTHS + 1 }, (_, i) => {
    const here = tested.filter(({ predicted }) => classOf(predicted.ownShare) === i);
    const weight = all.filter(({ ownShare }) => classOf(ownShare) === i).length / all.length;
    return here.length === 0 ? 0 : (weight * here.filter(({ gains }) => gains).length) / here.length;
  });
  return `${(100 * rates.reduce((a, b) => a + b, 0)).toFixed(0)} %`;
}

/** The numbers of the test. @returns a table in Markdown; before all pairs are there, a sentence */
export function blindText(part: Part, results: Results): string {
  const row = (name: string, tested: readonly Tested[]) => {
    const { found, gaining, silent, others } = countsOf(tested);
    return [
      name,
      `${gaining} of ${tested.length}`,
      `${tested.filter(({ loses }) => loses).length}`,
      areaText(tested, 'ownShare'),
      shareText(found, gaining),
      shareText(silent, others),
      orderText(tested),
      areaText(tested, 'inflation'),
    ];
  };
  const tested = testedOf(part, results);
  const fewest = Math.min(...tested.map(({ gain }) => gain.pairs));
  if (fewest === 0) return 'nothing yet';
  const of = (recipe: string) => tested.filter(({ regime }) => regime.recipe.includes(recipe));
  if (!isComplete(tested))
    return (
      `So far ${fewest} of ${part.seeds.length} pairs are complete, so the test decides nothing yet. The rank correlation ` +
      `of the mean gain with how low the own share is: ${orderText(tested)} over all regimes, ` +
      `${orderText(of('escalation'))} in \`escalation\` and ${orderText(of('two-agents'))} in \`two-agents\`.`
    );
  const head = ['AUC of the own share', 'sensitivity at .5', 'specificity at .5', 'rank correlation'];
  return table(
    ['regimes', 'gain', 'lose', ...head, 'AUC of the inflation'],
    [
      row('**all (primary)**', tested),
      row('`escalation`', of('escalation')),
      row('`two-agents`', of('two-agents')),
      row('all, by the last evaluation', testedOf(part, results, lastScore)),
    ],
  );
}

/** The regimes in each fifth of the own share, and how many of them gain. */
export function calibrationText(part: Part, results: Results): string {
  const tested = testedOf(part, results).filter(({ gain }) => gain.pairs > 0);
  const complete = isComplete(tested);
  const rows = Array.from({ length: FIFTHS }, (_, fifth) => {
    const here = tested.filter(({ predicted }) => fifthOf(predicted.ownShare) === fifth);
    const centre = here.length === 0 ? '-' : points(mean(here.map(({ gain }) => gain.mean)));
    const decided = [here.filter(({ gains }) => gains), here.filter(({ loses }) => loses)].map(
      ({ length }) => `${length}`,
    );
    const named = `${fifth / FIFTHS} to ${(fifth + 1) / FIFTHS}`;
    return [named, `${here.length}`, ...(complete ? decided : []), centre];
  });
  return table(['own share', 'regimes', ...(complete ? ['gain', 'lose'] : []), 'mean gain, points'], rows);
}

/** One row a regime, in the order of the own share. */
export function regimesText(part: Part, results: Results): string {
  const last = new Map(testedOf(part, results, lastScore).map(({ regime, gain }) => [regime, gain]));
  const rows = testedOf(part, results)
    .toSorted((a, b) => a.predicted.ownShare - b.predicted.ownShare)
    .map(({ regime, predicted, gain, gains, loses }) => [
      `${regime.dose?.label}`,
      decimals(predicted.ownShare),
      decimals(predicted.inflation),
      gainText(gain),
      gainText(last.get(regime) ?? gain),
      gains ? 'gains' : loses ? 'loses' : '',
    ]);
  return table(['regime', 'own share', 'inflation', 'drmas minus grpo', 'of the last evaluation', ''], rows);
}

/** Whether the probe may say "will probably", by the rule of the plan. */
export function isTrusted(part: Part, results: Results): boolean {
  const tested = testedOf(part, results);
  const { gaining, found, others, silent } = countsOf(tested);
  return isComplete(tested) && found / gaining >= TRUSTED && silent / others >= TRUSTED;
}

/** The axes of a figure of gains against a predictor. */
const AXES = {
  ownShare: {
    value: ({ predicted }: Tested) => 100 * predicted.ownShare,
    axis: { label: 'own share that the probe saw before training, %', include: [0, 100], reference: 50 },
  },
  mismatch: {
    value: ({ mismatch }: Tested) => Math.log2(1 + mismatch),
    axis: { label: 'log2 of 1 + mismatch of the means that the same probe saw', include: [0] },
  },
} as const;

/** Gains against a predictor, one series for each kind of team. */
export function blindFigure(part: Part, results: Results, by: keyof typeof AXES = 'ownShare'): Figure {
  const { value, axis } = AXES[by];
  const tested = testedOf(part, results).filter(({ gain }) => gain.pairs > 0);
  const kinds = [
    ['escalation', 'escalation'],
    ['two-agents', 'two agents of CreditBench'],
  ] as const;
  return {
    title: BLIND.title,
    series: kinds.map(([recipe, name]) => ({
      name,
      points: tested
        .filter(({ regime }) => regime.recipe.includes(recipe))
        .map((one) => gainPoint(value(one), one.gain)),
    })),
    x: axis,
    y: { label: 'gain over the whole curve, points', reference: 0 },
  };
}
