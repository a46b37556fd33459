/** Whether a shared mean harms through weights that contexts share: research/plans/mechanism.md. */
import { mean } from '@drmas/engine/math';
import { type Comparison, compare, curveScore, LARGEST_P, type PartResults, slopeOf } from './analysis.js';
import type { Regime, Variant } from './declaration.js';
import { holm } from './p-values.js';
import { differs, exactText, gainText, slopeText, table } from './text.js';

/** A model of the expert: the overlap of its contexts by seed, and the pairs. */
interface Sharing {
  readonly regime: Regime;
  readonly overlaps: ReadonlyMap<number, number>;
  readonly gain: Comparison;
}

/** The variant that is compared with the baseline. @throws Error if there is none */
function compared({ part, baseline }: PartResults): Variant {
  const variant = part.variants.find((one) => one !== baseline);
  if (variant === undefined) throw new Error(`${part.id} compares nothing`);
  return variant;
}

const label = ({ id, dose }: Regime) => dose?.label ?? id;

/** The models whose pairs and overlaps are all there. */
function sharingIn(results: PartResults): Sharing[] {
  const { seeds, regimes } = results.part;
  return regimes.flatMap((regime) => {
    const overlaps = new Map(
      seeds.flatMap((seed) => {
        const overlap = results.overlap(regime, seed);
        return overlap === undefined ? [] : [[seed, overlap] as const];
      }),
    );
    const gain = results.comparison(regime, compared(results), curveScore);
    return gain.pairs < seeds.length || overlaps.size < seeds.length ? [] : [{ regime, overlaps, gain }];
  });
}

const meanOverlap = ({ overlaps }: Sharing) => mean([...overlaps.values()]);

/** One row a model, by overlap: the scores over the whole curve, and the difference with p by Holm over all models. */
export function mechanismTable(results: PartResults): string {
  const all = sharingIn(results).toSorted((a, b) => meanOverlap(a) - meanOverlap(b));
  if (all.length === 0) return 'nothing yet';
  const adjusted = holm(all.map(({ gain }) => gain.p));
  const other = compared(results);
  const score = (regime: Regime, variant: Variant) =>
    (100 * mean(results.runs(regime, variant).map((run) => curveScore(regime, run)))).toFixed(1);
  const rows = all.map((one, i) => [
    label(one.regime),
    meanOverlap(one).toFixed(2),
    `${one.regime.learningRate}`,
    ...[results.baseline, other].map((variant) => score(one.regime, variant)),
    gainText(one.gain),
    exactText(adjusted[i] ?? 1),
    gainText(results.comparison(one.regime, other)),
    (adjusted[i] ?? 1) > LARGEST_P ? 'no difference shown' : differs(one.gain),
  ]);
  const difference = `${other.id} minus ${results.baseline.id}`;
  return table(
    ['model', 'overlap', 'rate', results.baseline.id, other.id, difference, 'p by Holm', 'last evaluation', 'shown'],
    rows,
  );
}

/** The slope of the difference on the overlap, for each seed over the models, with the interval over seeds. */
export function overlapSlope(results: PartResults): string {
  const slope = slopeOnOverlap(results);
  return slope === undefined ? 'nothing yet' : slopeText(slope);
}

/** The same as a comparison; undefined before two models are complete. */
export function slopeOnOverlap(results: PartResults): Comparison | undefined {
  const all = sharingIn(results);
  if (all.length < 2) return undefined;
  const gains = all.map(({ regime }) => new Map(gainsBySeed(results, regime)));
  const slopes = results.part.seeds.flatMap((seed) => {
    const points = all.map(({ overlaps }, i) => ({
      x: overlaps.get(seed) ?? Number.NaN,
      y: gains[i]?.get(seed) ?? Number.NaN,
    }));
    return slopeOf(points) ?? [];
  });
  return compare(slopes);
}

const gainsBySeed = (results: PartResults, regime: Regime) =>
  results.gains(regime, compared(results), curveScore).map(({ seed, gain }) => [seed, gain] as const);

/** Squared signal and noise of a small step's gradient. */
export interface SignalAndNoise {
  readonly signal: number;
  readonly noise: number;
}

/**
 * Signal and noise of the gradients of small steps, from their mean norm and from the norm of a step that is as large
 * as `steps` of them: small^2 = signal^2 + noise^2, and large^2 = signal^2 + noise^2 / steps. A signal^2 of a few
 * measurements can lie below 0.
 */
export function signalAndNoise(small: number, large: number, steps: number): SignalAndNoise {
  const signal = (steps * large ** 2 - small ** 2) / (steps - 1);
  return { signal, noise: small ** 2 - signal };
}

/**
 * One row a model: signal and noise of a step's gradient under both estimators, as roots of their mean squares over the
 * seeds, and the ratio of the squares. A square of a few measurements can lie below 0; 0 and no ratio stand for it.
 */
export function noiseTable(results: PartResults): string {
  const { regimes, seeds, variants } = results.part;
  const estimators = [...new Set(variants.map(({ id }) => id.replace(/-(small|large)$/, '')))];
  const rows = regimes.flatMap((regime) => {
    const norms = (name: string, seed: number) => {
      const run = results.train(regime, results.variant(name), seed)?.agents[regime.agent];
      return run === undefined ? undefined : (run.norms ?? []);
    };
    const bySeed = estimators.map((estimator) =>
      seeds.flatMap((seed) => {
        const [small, [large = Number.NaN] = []] = ['small', 'large'].map((size) =>
          norms(`${estimator}-${size}`, seed),
        );
        return small === undefined || Number.isNaN(large) ? [] : signalAndNoise(mean(small), large, small.length);
      }),
    );
    if (bySeed.some((each) => each.length < seeds.length)) return [];
    const cells = bySeed.flatMap((each) => {
      const signal = mean(each.map((one) => one.signal));
      const noise = mean(each.map((one) => one.noise));
      return [
        signal > 0 ? Math.sqrt(signal).toPrecision(2) : '0',
        noise > 0 ? Math.sqrt(noise).toPrecision(2) : '0',
        noise > 0 ? (signal / noise).toFixed(2) : '–',
      ];
    });
    return [[label(regime), ...cells]];
  });
  if (rows.length === 0) return 'nothing yet';
  const head = estimators.flatMap((estimator) => [`\`${estimator}\`: signal`, 'noise', 'signal² / noise²']);
  return table(['model', ...head], rows);
}
