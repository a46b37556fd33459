/** The top of the page: the primary comparisons, and one figure of all regimes. */
import { holm } from '../../src/runs/analysis/paired-interval.js';
import { dosesOf, PartResults } from './analysis.js';
import type { Part, Primary } from './declaration.js';
import { exactText, gainText, points, table } from './part-text.js';
import type { Results } from './stored-result.js';
import { figureText, type PlottedPoint } from './svg.js';

export const SUMMARY = {
  title: "Gain of Dr. MAS over GRPO, against the share of the signal that is the agent's own",
  file: 'own-share.svg',
} as const;

/** One row for each primary comparison that has results. */
export function primariesText(primaries: readonly Primary[], partOf: (id: string) => Part, results: Results): string {
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
    `[${primary.question}](#${primary.question})`,
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
      .map(({ predicted, gain }): PlottedPoint => {
        const ends =
          gain.interval === undefined ? {} : { low: 100 * gain.interval.low, high: 100 * gain.interval.high };
        return { x: 100 * predicted.ownShare, y: 100 * gain.mean, ...ends };
      });
    return { name: part.id, points: plotted };
  });
  return figureText({
    title: SUMMARY.title,
    series: series.filter(({ points }) => points.length > 0),
    x: { label: 'own share that the probe saw before training, %', include: [0, 100], reference: 50 },
    y: { label: 'gain, points', reference: 0 },
  });
}
