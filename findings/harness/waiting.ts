/** How long runs take to a success: findings/plans/catch-up.md. */
import { mean, median } from '../../src/base/core/statistics.js';
import { holm } from '../../src/runs/analysis/paired-interval.js';
import { compare, LARGEST_P, type PartResults, scoreAt } from './analysis.js';
import type { Regime, Variant, Waiting } from './declaration.js';
import { exactText, table } from './part-text.js';
import type { TrainResult } from './stored-result.js';
import type { Figure } from './svg.js';

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

/**
 * One row a part: the paired times of a slow and a quick estimator, each at the rate at which it is soonest, with p by
 * Holm over the parts that are complete.
 */
export function soonerTable(parts: readonly PartResults[], slow: string, quick: string): string {
  const compared = parts.flatMap((results) => {
    const { waiting, all } = waitedIn(results);
    const [late, early] = [soonest(results, all, slow), soonest(results, all, quick)];
    if (late === undefined || early === undefined) return [];
    const gain = compare(late.steps.map((step, i) => step - (early.steps[i] ?? Number.NaN)));
    return [{ title: results.part.title, enough: waiting.enough, late, early, gain }];
  });
  if (compared.length === 0) return 'nothing yet';
  const adjusted = holm(compared.map(({ gain }) => gain.p));
  const rows = compared.map(({ title, enough, late, early, gain }, i) => {
    const p = adjusted[i] ?? 1;
    return [
      title,
      ...[late, early].map(({ variant, steps }) => `${whole(mean(steps))} (\`${variant.id}\`)`),
      (mean(late.steps) / mean(early.steps)).toFixed(1),
      exactText(p),
      late.reached >= enough ? 'yes' : 'no',
      p <= LARGEST_P && gain.mean > 0 ? 'slower' : 'no difference shown',
    ];
  });
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
