/** The top of the page: the primary comparisons, and one figure of all regimes. */
import { mean } from '@drmas/engine/math';
import { dosesOf, PartResults, scoreAt } from './analysis.js';
import { anchorOf, type Part, type Primary, type Question } from './declaration.js';
import { holm } from './p-values.js';
import type { Results } from './stored-result.js';
import { figureText, gainPoint } from './svg.js';
import { exactText, gainText, points, table } from './text.js';

export const SUMMARY = {
  title: "Gain of Dr. MAS over GRPO, against the share of the signal that is the agent's own",
  file: 'own-share.svg',
} as const;

/** A regime of a part, and its compared variants, each with the name that readers see. */
interface Curves {
  readonly title: string;
  readonly file: string;
  readonly part: string;
  readonly regime: string;
  readonly variants: readonly (readonly [id: string, name: string])[];
}

/** The figure on the first screen of the README. */
export const TWO_CURVES: Curves = {
  title: 'Held-out success of a coder and a fixer during training: the runs of each estimator, and their means',
  file: 'two-curves.svg',
  part: 'drift',
  regime: 'repair-25',
  variants: [
    ['grpo', 'GRPO: one mean for the team'],
    ['drmas', "Dr. MAS: each agent's own mean"],
  ],
};

/** The runs of a regime as thin lines and their means as thick ones. Undefined if a variant has no run yet. */
export function twoCurves(
  parts: readonly Part[],
  results: Results,
  { title, part: id, regime: name, variants }: Curves = TWO_CURVES,
): string | undefined {
  const part = parts.find((one) => one.id === id);
  const regime = part?.regimes.find((one) => one.id === name);
  if (part === undefined || regime === undefined) return undefined;
  const of = new PartResults(part, results);
  const series = variants.flatMap(([variant, name]) => {
    const curves = of.runs(regime, of.variant(variant)).map(({ curve }) => curve);
    const lines = curves.map((curve) => curve.map((point) => ({ x: point.step, y: 100 * scoreAt(regime, point) })));
    const middle = (lines[0] ?? []).map(({ x }, i) => ({ x, y: mean(lines.map((line) => line[i]?.y ?? Number.NaN)) }));
    const end = `${(middle.at(-1)?.y ?? Number.NaN).toFixed(1)} %`;
    return [...lines.map((points) => ({ name, points, thin: true })), { name, points: middle, line: true, end }];
  });
  if (series.some(({ points }) => points.length === 0)) return undefined;
  return figureText({
    title,
    series,
    x: { label: 'step of training' },
    y: { label: 'held-out success, %', include: [0, 100] },
    moving: true,
  });
}

/** One row for each primary comparison that has results. */
export function primariesText(
  primaries: readonly Primary[],
  partOf: (id: string) => Part,
  questions: readonly Question[],
  results: Results,
): string {
  const anchors = new Map(questions.map((question) => [question.id, anchorOf(question)]));
  const compared = primaries.flatMap((primary) => {
    const part = partOf(primary.part);
    const other = primary.other ?? part.baseline;
    const of = new PartResults({ ...part, baseline: other }, results);
    const regime = part.regimes.find(({ id }) => id === primary.regime);
    if (regime === undefined) throw new Error(`unknown: a regime ${primary.regime} in ${part.id}`);
    const comparison = of.comparison(regime, of.variant(primary.variant));
    return comparison.pairs === 0 ? [] : [{ primary, other, comparison }];
  });
  if (compared.length === 0) return 'nothing yet';
  const adjusted = holm(compared.map(({ comparison }) => comparison.p));
  const rows = compared.map(({ primary, other, comparison }, i) => [
    `[${primary.question}](#${anchors.get(primary.question)})`,
    `\`${primary.regime}\`: \`${primary.variant}\` minus \`${other}\``,
    gainText(comparison),
    points(comparison.median),
    `${comparison.better} of ${comparison.pairs}`,
    exactText(adjusted[i] ?? 1),
  ]);
  return table(['question', 'comparison', 'mean', 'median', 'better in', 'p after Holm'], rows);
}

/** The gain of Dr. MAS in every probed regime, one series for each part. */
export function summaryFigure(parts: readonly Part[], results: Results): string {
  const series = parts.map((part) => {
    const of = new PartResults(part, results);
    const variant = part.variants.find(({ id }) => id === 'drmas');
    const doses = variant === undefined ? [] : dosesOf(of, variant);
    const plotted = doses
      .filter(({ gain, predicted }) => gain.pairs > 0 && Number.isFinite(predicted.ownShare))
      .map(({ predicted, gain }) => gainPoint(100 * predicted.ownShare, gain));
    return { name: part.id, points: plotted };
  });
  return figureText({
    title: SUMMARY.title,
    series: series.filter(({ points }) => points.length > 0),
    x: { label: 'own share that the probe saw before training, %', include: [0, 100], reference: 50 },
    y: { label: 'gain, points', reference: 0 },
  });
}
