/** How long runs take to a success: research/plans/catch-up.md. */
import { mean, median } from '@drmas/engine/math';
import { type Comparison, compare, LARGEST_P, type PartResults, scoreAt, slopeOf } from './analysis.js';
import type { Regime, Variant, Waiting } from './declaration.js';
import { holm } from './p-values.js';
import type { TrainResult } from './stored-result.js';
import type { Figure } from './svg.js';
import { exactText, table } from './text.js';

/** The runs of a variant: the step at which each reached the score, and how many did. */
interface Waited {
  readonly variant: Variant;
  readonly steps: readonly number[];
  readonly reached: number;
}

const reaches = ({ score }: Waiting, regime: Regime, { curve }: TrainResult) =>
  curve.find((point) => scoreAt(regime, point) >= score)?.step;

/** The variants of a part with one regime. @throws Error if its runs are not timed */
function waitedIn(results: PartResults): { readonly waiting: Waiting; readonly all: readonly Waited[] } {
  const { id, regimes, variants, waiting } = results.part;
  const [regime] = regimes;
  if (waiting === undefined || regime === undefined) throw new Error(`the runs of ${id} are not timed`);
  const all = variants.map((variant) => {
    const steps = results.runs(regime, variant).map((run) => reaches(waiting, regime, run));
    return {
      variant,
      steps: steps.map((step) => step ?? waiting.most),
      reached: steps.filter((step) => step !== undefined).length,
    };
  });
  return { waiting, all };
}

const estimatorOf = ({ id }: Variant) => id.replace(/-at-[\d.e-]+$/, '');

/** The variant of an estimator that reaches the score soonest on average; undefined until all its runs are there. */
function soonest(results: PartResults, all: readonly Waited[], estimator: string): Waited | undefined {
  const own = all.filter(({ variant }) => estimatorOf(variant) === estimator);
  if (own.some(({ steps }) => steps.length < results.part.seeds.length)) return undefined;
  return own.toSorted((a, b) => mean(a.steps) - mean(b.steps))[0];
}

const whole = (value: number) => Math.round(value).toLocaleString('en');

/** One row a variant: the runs that reached the score, and their time in steps and in training episodes. */
export function waitingTable(results: PartResults): string {
  const { waiting, all } = waitedIn(results);
  const rows = all.map(({ variant, reached, steps }) => {
    const times = steps.length === 0 ? [] : [mean(steps), median(steps), waiting.episodes * mean(steps)];
    return [
      `\`${variant.id}\``,
      `${reached} of ${steps.length}`,
      ...(times.length === 0 ? ['-', '-', '-'] : times.map(whole)),
    ];
  });
  return table(['variant', `runs that reached ${100 * waiting.score} %`, 'mean step', 'median', 'mean episodes'], rows);
}

/** The paired times of a slow and a quick estimator in a part, each at the rate at which it is soonest. */
export interface Sooner {
  readonly part: string;
  readonly title: string;
  readonly late: Waited;
  readonly early: Waited;
  /** The mean step of the slow one over that of the quick one. */
  readonly ratio: number;
  /** By Holm over the parts that are complete. */
  readonly p: number;
  /** Whether enough runs of the slow one reach the score. */
  readonly catchesUp: boolean;
  readonly isSlower: boolean;
}

/** The parts that are complete. */
export function soonerOf(parts: readonly PartResults[], slow: string, quick: string): Sooner[] {
  const compared = parts.flatMap((results) => {
    const { waiting, all } = waitedIn(results);
    const [late, early] = [soonest(results, all, slow), soonest(results, all, quick)];
    if (late === undefined || early === undefined) return [];
    const gain = compare(late.steps.map((step, i) => step - (early.steps[i] ?? Number.NaN)));
    return [{ part: results.part.id, title: results.part.title, enough: waiting.enough, late, early, gain }];
  });
  const adjusted = holm(compared.map(({ gain }) => gain.p));
  return compared.map(({ enough, gain, ...one }, i) => {
    const p = adjusted[i] ?? 1;
    return {
      ...one,
      p,
      ratio: mean(one.late.steps) / mean(one.early.steps),
      catchesUp: one.late.reached >= enough,
      isSlower: p <= LARGEST_P && gain.mean > 0,
    };
  });
}

/**
 * One row a part: the paired times of a slow and a quick estimator, each at the rate at which it is soonest, with p by
 * Holm over the parts that are complete.
 */
export function soonerTable(parts: readonly PartResults[], slow: string, quick: string): string {
  const compared = soonerOf(parts, slow, quick);
  if (compared.length === 0) return 'nothing yet';
  const rows = compared.map(({ title, late, early, ratio, p, catchesUp, isSlower }) => [
    title,
    ...[late, early].map(({ variant, steps }) => `${whole(mean(steps))} (\`${variant.id}\`)`),
    ratio.toFixed(1),
    exactText(p),
    catchesUp ? 'yes' : 'no',
    isSlower ? 'slower' : 'no difference shown',
  ]);
  const head = ['', `\`${slow}\`, mean step`, `\`${quick}\`, mean step`, 'ratio', 'p by Holm'];
  return table([...head, `\`${slow}\` catches up`, 'shown'], rows);
}

/** The share of runs that have not reached the score, by step: of each estimator at the rate at which it is soonest. */
export function waitingFigure(results: PartResults): Figure {
  const { waiting, all } = waitedIn(results);
  const best = [...new Set(results.part.variants.map(estimatorOf))].flatMap(
    (name) => soonest(results, all, name) ?? [],
  );
  return {
    title: results.part.title,
    series: best.map((one) => ({ name: one.variant.id, line: true, points: survivors(one, waiting.most) })),
    x: { label: `step, of ${waiting.episodes} episodes` },
    y: { label: `runs below ${100 * waiting.score} %, %`, include: [0, 100] },
  };
}

/** The corners of a curve that falls whenever a run reaches the score. */
function survivors({ steps, reached }: Waited, most: number) {
  const left = (count: number) => (100 * (steps.length - count)) / steps.length;
  const falls = steps.toSorted((a, b) => a - b).slice(0, reached);
  return [
    { x: 0, y: 100 },
    ...falls.flatMap((x, i) => [
      { x, y: left(i) },
      { x, y: left(i + 1) },
    ]),
    { x: most, y: left(reached) },
  ];
}

// The price of a shared mean in steps, at equal rates.

/** The steps of a slow estimator over those of a quick one at one rate, as logarithms, in the pairs that are there. */
export interface RateRatio {
  readonly rate: number;
  readonly slow: Waited;
  readonly quick: Waited;
  readonly ratio: Comparison;
}

function ratiosOf(results: PartResults, slow: string, quick: string): RateRatio[] {
  const { all } = waitedIn(results);
  const of = (estimator: string) => all.filter(({ variant }) => estimatorOf(variant) === estimator);
  return of(slow).flatMap((late) => {
    const rate = late.variant.learningRate;
    const early = of(quick).find(({ variant }) => variant.learningRate === rate);
    if (rate === undefined || early === undefined || late.steps.length !== early.steps.length) return [];
    const logs = late.steps.map((step, i) => Math.log(step / (early.steps[i] ?? Number.NaN)));
    return logs.length === 0 ? [] : [{ rate, slow: late, quick: early, ratio: compare(logs) }];
  });
}

/** The ratios whose pairs are all there. */
export const wholeRatios = (results: PartResults, slow: string, quick: string): RateRatio[] =>
  ratiosOf(results, slow, quick).filter(({ ratio }) => ratio.pairs === results.part.seeds.length);

const factorText = ({ mean: centre, interval }: Comparison) => {
  const [low, high] = [interval?.low, interval?.high].map((value = Number.NaN) => Math.exp(value).toFixed(2));
  return `${Math.exp(centre).toFixed(2)} [${low}, ${high}]`;
};

/**
 * One row a part and rate: how many times the steps of the quick estimator the slow one needs at the same rate. The
 * factor is the geometric mean over the pairs with the 95 % t interval of its logarithm; a run that does not reach the
 * score counts its last step. The p is exact, adjusted by Holm over the rows; before all pairs are there, a row says so
 * and has no p.
 */
export function ratiosTable(parts: readonly PartResults[], slow: string, quick: string): string {
  const rows = parts.flatMap((results) =>
    ratiosOf(results, slow, quick).map((one) => ({
      title: results.part.title,
      pairs: results.part.seeds.length,
      ...one,
    })),
  );
  if (rows.length === 0) return 'nothing yet';
  const adjusted = holm(rows.map(({ ratio }) => ratio.p));
  const reached = ({ reached, steps }: Waited) => `${reached} of ${steps.length}`;
  return table(
    [
      '',
      'rate',
      'steps, ratio',
      `\`${slow}\` later in`,
      'p',
      'p by Holm',
      `\`${slow}\` gets there`,
      `\`${quick}\` gets there`,
    ],
    rows.map(({ title, pairs, rate, ratio, slow: late, quick: early }, i) => [
      title,
      `${rate}`,
      factorText(ratio),
      `${ratio.better} of ${ratio.pairs}`,
      ...(ratio.pairs < pairs ? ['so far', ''] : [exactText(ratio.p), exactText(adjusted[i] ?? 1)]),
      reached(late),
      reached(early),
    ]),
  );
}

/** The factor of a part at one rate, with its interval. @throws Error if the part has no such rate */
export function ratioText(results: PartResults, slow: string, quick: string, rate: number): string {
  if (!results.part.variants.some(({ learningRate }) => learningRate === rate))
    throw new Error(`${results.part.id} has no rate ${rate}`);
  const one = wholeRatios(results, slow, quick).find((each) => each.rate === rate);
  return one === undefined ? 'nothing yet' : factorText(one.ratio);
}

/**
 * The smallest and the largest factor of some cells, each `PART@RATE`, without their intervals: `1.2 to 1.5`.
 * @param of The results of a part, by its name
 */
export function factorsText(
  cells: readonly string[],
  of: (part: string) => PartResults,
  [slow, quick]: readonly [slow: string, quick: string],
): string {
  const factors = cells.flatMap((cell) => {
    const [part = '', rate = ''] = cell.split('@');
    const found = wholeRatios(of(part), slow, quick).find((each) => each.rate === Number(rate));
    return found === undefined ? [] : [Math.exp(found.ratio.mean)];
  });
  if (factors.length < cells.length) return 'nothing yet';
  return `${Math.min(...factors).toFixed(1)} to ${Math.max(...factors).toFixed(1)}`;
}

/** The runs of a variant that reach the score of a part: `2 of 8`. */
export function reachedText(results: PartResults, id: string): string {
  const waited = waitedIn(results).all.find(({ variant }) => variant.id === id);
  if (waited === undefined) throw new Error(`${results.part.id} has no variant ${id}`);
  return waited.steps.length === 0 ? 'nothing yet' : `${waited.reached} of ${waited.steps.length}`;
}

/** How the factor of a part changes for ten times the rate: the mean over pairs of each pair's slope, as a factor. */
export function ratioSlopeText(results: PartResults, slow: string, quick: string): string {
  const ratios = wholeRatios(results, slow, quick);
  if (ratios.length < 2) return 'nothing yet';
  const slopes = results.part.seeds.flatMap(
    (_, i) =>
      slopeOf(
        ratios.map(({ rate, slow: late, quick: early }) => ({
          x: Math.log10(rate),
          y: Math.log((late.steps[i] ?? Number.NaN) / (early.steps[i] ?? Number.NaN)),
        })),
      ) ?? [],
  );
  const slope = compare(slopes);
  return `${factorText(slope)}, ${slope.pairs} pairs, p = ${exactText(slope.p)}`;
}

export const RATE_FACTOR = {
  title: 'Steps that GRPO needs for one step of Dr. MAS, at equal learning rates',
  file: 'rate-factor.svg',
} as const;

/** The factor in steps against the rate, one series a part. */
export function rateFactorFigure(parts: readonly PartResults[], slow: string, quick: string): Figure {
  const all = parts
    .map((results) => ({ name: results.part.title, ratios: wholeRatios(results, slow, quick) }))
    .filter(({ ratios }) => ratios.length > 0);
  const rates = [...new Set(all.flatMap(({ ratios }) => ratios.map(({ rate }) => rate)))].sort((a, b) => a - b);
  return {
    title: RATE_FACTOR.title,
    series: all.map(({ name, ratios }) => ({
      name,
      line: true,
      points: ratios.map(({ rate, ratio: { mean: centre, interval } }) => ({
        x: rates.indexOf(rate),
        y: Math.exp(centre),
        ...(interval === undefined ? {} : { low: Math.exp(interval.low), high: Math.exp(interval.high) }),
      })),
    })),
    x: { label: 'learning rate of both', names: rates.map(String) },
    y: { label: 'steps to 90 %, ratio', include: [0], reference: 1 },
  };
}
