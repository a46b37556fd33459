/** Comparisons of variants in pairs, and gains against the probe's predictions. */

import { mean, median, standardDeviation } from '@drmas/engine/math';
import {
  LARGEST_P,
  type PairedInterval,
  pairedInterval,
  shownDifference,
} from '../../src/runs/analysis/paired-interval.js';
import { signFlipP } from '../../src/runs/analysis/sign-flips.js';
import { PAIRS_FOR_A_CLAIM, type Part, type Regime, type Variant } from './declaration.js';
import type { ProbeResult, Results, TrainResult } from './stored-result.js';

/** The results of one part. */
export class PartResults {
  readonly part: Part;
  readonly #results: Results;

  constructor(part: Part, results: Results) {
    this.part = part;
    this.#results = results;
  }

  train(regime: Regime, variant: Variant, seed: number): TrainResult | undefined {
    const result = this.#results.of({ kind: 'train', regime, variant, seed });
    return result?.kind === 'train' ? result : undefined;
  }

  probe(regime: Regime, seed: number): ProbeResult | undefined {
    const result = this.#results.of({ kind: 'probe', regime, variant: this.baseline, seed });
    return result?.kind === 'probe' ? result : undefined;
  }

  /** The overlap of the agent's contexts; undefined if it is not measured yet. */
  overlap(regime: Regime, seed: number): number | undefined {
    const result = this.#results.of({ kind: 'overlap', regime, variant: this.baseline, seed });
    return result?.kind === 'overlap' ? result.overlap : undefined;
  }

  get baseline(): Variant {
    return this.variant(this.part.baseline);
  }

  /** The same results, compared with another variant. */
  against(baseline: string): PartResults {
    return new PartResults({ ...this.part, baseline }, this.#results);
  }

  /** @throws Error if the part has no such variant */
  variant(id: string): Variant {
    const variant = this.part.variants.find((one) => one.id === id);
    if (variant === undefined) throw new Error(`${this.part.id} has no variant ${id}`);
    return variant;
  }

  /** The runs of a variant that are there. */
  runs(regime: Regime, variant: Variant): TrainResult[] {
    return this.part.seeds.flatMap((seed) => this.train(regime, variant, seed) ?? []);
  }

  /** The gain of each pair with both runs present: variant minus baseline, by default of the last score. */
  gains(regime: Regime, variant: Variant, score = lastScore): Pair[] {
    return this.part.seeds.flatMap((seed) => {
      const [run, other] = [this.train(regime, variant, seed), this.train(regime, this.baseline, seed)];
      return run === undefined || other === undefined
        ? []
        : [{ seed, gain: score(regime, run) - score(regime, other) }];
    });
  }

  comparison(regime: Regime, variant: Variant, score = lastScore): Comparison {
    return compare(
      this.gains(regime, variant, score).map(({ gain }) => gain),
      this.part.seeds.length,
    );
  }
}

export interface Pair {
  readonly seed: number;
  readonly gain: number;
}

/** A regime's score at one evaluation of a run. */
export const scoreAt = ({ score }: Regime, point: TrainResult['curve'][number]): number => point[score] ?? Number.NaN;

export const lastScore = (regime: Regime, { curve }: TrainResult): number => {
  const last = curve.at(-1);
  return last === undefined ? Number.NaN : scoreAt(regime, last);
};

/** The reward of the regime's agent in the last evaluation. */
export const lastReward = (_: Regime, { curve }: TrainResult): number => curve.at(-1)?.agent ?? Number.NaN;

/** The mean of a run's evaluations after the first: how soon it learnt. */
export const curveScore = (regime: Regime, { curve }: TrainResult): number =>
  mean(curve.slice(1).map((point) => scoreAt(regime, point)));

/** The difference between a run's highest score and its last. */
export const fall = (regime: Regime, run: TrainResult): number =>
  Math.max(...run.curve.map((point) => scoreAt(regime, point))) - lastScore(regime, run);

export { LARGEST_P };

export interface Comparison extends PairedInterval {
  readonly pairs: number;
  /** The median of the differences. */
  readonly median: number;
  /** The exact p value of the sign-flip test over the pairs. */
  readonly p: number;
  /** The pairs in which the variant ended higher. */
  readonly better: number;
  readonly verdict: 'higher' | 'lower' | 'no difference shown' | 'so far' | 'too few pairs';
}

/**
 * A difference is claimed if the 95 % t interval over at least ten pairs excludes 0, and the exact p is at most .05.
 * @param planned The pairs that will be there; if all are there and they are fewer than ten, they are too few
 */
export function compare(gains: readonly number[], planned = PAIRS_FOR_A_CLAIM): Comparison {
  const interval = pairedInterval(gains);
  const p = signFlipP(gains);
  const claimed = shownDifference(interval, p) ?? 'no difference shown';
  return {
    ...interval,
    pairs: gains.length,
    median: median(gains),
    p,
    better: gains.filter((gain) => gain > 0).length,
    verdict: gains.length >= PAIRS_FOR_A_CLAIM ? claimed : gains.length < planned ? 'so far' : 'too few pairs',
  };
}

/**
 * The variant whose runs score highest on average; undefined unless all seeds of all variants are present. If several
 * are equal, the earliest.
 */
export function highest(
  results: PartResults,
  regime: Regime,
  variants: readonly Variant[],
  score = lastScore,
): Variant | undefined {
  const scored = variants.map((variant) => ({ variant, runs: results.runs(regime, variant) }));
  if (scored.some(({ runs }) => runs.length < results.part.seeds.length)) return undefined;
  const scores = scored.map(({ runs }) => mean(runs.map((run) => score(regime, run))));
  return variants[scores.indexOf(Math.max(...scores))];
}

/** The prediction of a probe for an agent. */
export interface Prediction {
  /** The inflation of its gradient's second moment under shared statistics (Lemma 4.2). */
  readonly inflation: number;
  /** The share (0..1) of its learning signal under shared statistics that comes from its own rewards. */
  readonly ownShare: number;
}

/** The prediction of a probe for an agent; NaN if the probe could not tell, or if there is none. */
export function predictionOf(agent: string, probe: ProbeResult | undefined): Prediction {
  const { inflation, ownShare } = probe?.agents[agent] ?? {};
  return { inflation: inflation ?? Number.NaN, ownShare: ownShare ?? Number.NaN };
}

/** A regime of a part as a dose: the prediction before, and the gain after. */
export interface Dose {
  readonly regime: Regime;
  /** The inflation in closed form, from the probes' success rates. NaN without `closedForm` or without probes. */
  readonly closedForm: number;
  /** Means over the seeds that were probed. */
  readonly predicted: Prediction;
  readonly gain: Comparison;
}

export function dosesOf(results: PartResults, variant: Variant): Dose[] {
  const { regimes, seeds } = results.part;
  return regimes.map((regime) => {
    const probes = seeds.flatMap((seed) => results.probe(regime, seed) ?? []);
    const predictions = probes.map((probe) => predictionOf(regime.agent, probe));
    const over = (key: keyof Prediction) =>
      predictions.length === 0 ? Number.NaN : mean(predictions.map((prediction) => prediction[key]));
    return {
      regime,
      closedForm: closedFormOf(regime, probes),
      predicted: { inflation: over('inflation'), ownShare: over('ownShare') },
      gain: results.comparison(regime, variant),
    };
  });
}

/** The mean over probes. A probe in which one outcome is missing is left out. */
function closedFormOf({ agent, closedForm }: Regime, probes: readonly ProbeResult[]): number {
  if (closedForm === undefined) return Number.NaN;
  const values = probes.map(({ success, agents }) =>
    rareCallerInflation({ called: agents[agent]?.reward ?? Number.NaN, all: success, ...closedForm }),
  );
  const known = values.filter(Number.isFinite);
  return known.length === 0 ? Number.NaN : mean(known);
}

/** How well a hint of the probe predicts a shown gain. */
export interface Rule {
  /** Doses with a claimed gain (`higher`), and all doses with enough pairs: those with the hint, and the others. */
  readonly hinted: { readonly gained: number; readonly doses: number };
  readonly silent: { readonly gained: number; readonly doses: number };
}

/** The limits of the two hints that an agent's own statistics would pay. */
export const HINTS = {
  inflation: { text: 'Inflation above 2', holds: (prediction: Prediction) => prediction.inflation > 2 },
  ownShare: { text: 'Own share below one half', holds: (prediction: Prediction) => prediction.ownShare < 0.5 },
} as const;

export function ruleOf(doses: readonly Dose[], by: keyof Prediction): Rule {
  const distinct = [...new Map(doses.map((dose) => [dose.regime.id, dose])).values()]; // two parts may share a regime
  const decided = distinct.filter(
    ({ gain, predicted }) => gain.pairs >= PAIRS_FOR_A_CLAIM && !Number.isNaN(predicted[by]),
  );
  const count = (those: readonly Dose[]) => ({
    gained: those.filter(({ gain }) => gain.verdict === 'higher').length,
    doses: those.length,
  });
  return {
    hinted: count(decided.filter(({ predicted }) => HINTS[by].holds(predicted))),
    silent: count(decided.filter(({ predicted }) => !HINTS[by].holds(predicted))),
  };
}

export interface Response {
  /**
   * The gain for each doubling of the inflation, or each halving of the own share: the mean over seeds of each seed's
   * least-squares slope.
   */
  readonly slope: Comparison;
  /** Pearson's correlation of gain and log predictor over all regimes and seeds. */
  readonly correlation: number;
  readonly points: number;
}

/** A predictor on the axis on which a gain is expected to rise. */
const doublings = (prediction: Prediction, by: keyof Prediction) =>
  by === 'inflation' ? Math.log2(prediction.inflation) : -Math.log2(prediction.ownShare);

/**
 * The response of the gain to a predictor. Seeds are independent and regimes within a seed are not, because they share
 * a warm start: so each seed gives one slope, and the interval is over seeds.
 */
export function responseOf(results: readonly PartResults[], variant: string, by: keyof Prediction): Response {
  const seen = new Set<string>(); // two parts may share a regime
  const points = results.flatMap((part) =>
    part.part.regimes.flatMap((regime) => {
      if (seen.has(regime.id)) return [];
      seen.add(regime.id);
      return part.gains(regime, part.variant(variant)).flatMap(({ seed, gain }) => {
        const probe = part.probe(regime, seed);
        const x = probe === undefined ? Number.NaN : doublings(predictionOf(regime.agent, probe), by);
        return Number.isFinite(x) ? [{ seed, x, y: gain }] : [];
      });
    }),
  );
  const seeds = [...new Set(points.map(({ seed }) => seed))];
  const slopes = seeds.flatMap((seed) => slopeOf(points.filter((point) => point.seed === seed)) ?? []);
  return { slope: compare(slopes), correlation: correlation(points), points: points.length };
}

/**
 * The slope of the gain over the whole curve for each doubling of the dose. Regimes within a seed share it: so each
 * seed gives one slope, and the interval is over seeds.
 */
export function slopeOnDose(results: PartResults, regimes: readonly Regime[], variant: Variant): Comparison {
  const points = regimes.flatMap((regime) =>
    results
      .gains(regime, variant, curveScore)
      .map(({ seed, gain }) => ({ seed, x: Math.log2(regime.dose?.value ?? Number.NaN), y: gain })),
  );
  return compare(results.part.seeds.flatMap((seed) => slopeOf(points.filter((point) => point.seed === seed)) ?? []));
}

interface Point {
  readonly x: number;
  readonly y: number;
}

/** The least-squares slope; undefined if all points have the same x. */
export function slopeOf(points: readonly Point[]): number | undefined {
  const [x, y] = [mean(points.map((point) => point.x)), mean(points.map((point) => point.y))];
  const squares = points.reduce((sum, point) => sum + (point.x - x) ** 2, 0);
  return squares < 1e-12 ? undefined : points.reduce((sum, point) => sum + (point.x - x) * (point.y - y), 0) / squares;
}

/** Pearson's correlation; NaN for fewer than three points, or if one side is constant. */
export function correlation(points: readonly Point[]): number {
  if (points.length < 3) return Number.NaN;
  const [xs, ys] = [points.map(({ x }) => x), points.map(({ y }) => y)];
  const [slope = Number.NaN, spread] = [slopeOf(points), standardDeviation(ys)];
  return spread === 0 ? Number.NaN : (slope * standardDeviation(xs)) / spread;
}

/** An agent that some episodes call once. */
export interface RareCaller {
  /** The success of the episodes that call the agent, 0..1. */
  readonly called: number;
  /** The success of all episodes, strictly between 0 and 1. */
  readonly all: number;
  /** The number of episodes in a group. */
  readonly groupSize: number;
}

/**
 * The expected square of the agent's score under GRPO, over the groups that have both outcomes, for rewards of 0 or 1
 * and independent episodes of equal difficulty. In a group of G episodes with F failures, a failure has the squared
 * score (G - F) / F and a success F / (G - F). The formula takes the mean over F. For large G it tends to
 * (q(1 - 2p) + p^2) / (p(1 - p)), with q = `called` and p = `all`, which is Lemma 4.2 of Dr. MAS; for small G it lies
 * below, because no squared score exceeds G - 1.
 */
export function rareCallerInflation({ called: q, all: p, groupSize: G }: RareCaller): number {
  const failures = (1 - p ** G) / (1 - p) - 1;
  const successes = (1 - (1 - p) ** G) / p - 1;
  const hasBoth = 1 - (1 - q) * (1 - p) ** (G - 1) - q * p ** (G - 1);
  return ((1 - q) * failures + q * successes) / hasBoth;
}
