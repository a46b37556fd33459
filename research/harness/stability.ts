/** The question of stability: gradient norms and their spikes under Dr. MAS and GRPO, in all regimes. */

import { mean, median } from '@drmas/engine/math';
import { signFlipP } from '../../src/runs/analysis/sign-flips.js';
import { type Comparison, compare, fall, LARGEST_P, lastScore, PartResults, scoreAt } from './analysis.js';
import { PAIRS_FOR_A_CLAIM, type Part, type Regime } from './declaration.js';
import { holm } from './p-values.js';
import type { Results, TrainResult } from './stored-result.js';
import type { Figure, Series } from './svg.js';
import { exactText, table } from './text.js';

type AgentNorms = TrainResult['agents'][string];

/** The pairs of one regime: the regime's agent under Dr. MAS and under GRPO. */
interface RegimePairs {
  readonly regime: Regime;
  readonly pairs: readonly { readonly drmas: AgentNorms; readonly grpo: AgentNorms }[];
}

/** The regimes in which both estimators have enough pairs for a claim. A regime that two parts share counts once. */
export function pairedRegimes(parts: readonly Part[], results: Results): RegimePairs[] {
  const found = new Map<string, RegimePairs>();
  for (const part of parts) {
    const of = new PartResults(part, results);
    const [drmas, grpo] = ['drmas', 'grpo'].map((name) => part.variants.find(({ id }) => id === name));
    if (drmas === undefined || grpo === undefined) continue;
    for (const regime of part.regimes) {
      const pairs = part.seeds.flatMap((seed) => {
        const [a, b] = [drmas, grpo].map((variant) => of.train(regime, variant, seed)?.agents[regime.agent]);
        return a === undefined || b === undefined ? [] : [{ drmas: a, grpo: b }];
      });
      if (pairs.length >= PAIRS_FOR_A_CLAIM && !found.has(regime.id)) found.set(regime.id, { regime, pairs });
    }
  }
  return [...found.values()];
}

/** The geometric mean of a ratio over pairs, Dr. MAS over GRPO, with the t interval of its logarithm. */
function ratioOf({ pairs }: RegimePairs, measure: (norms: AgentNorms) => number): Comparison {
  return compare(pairs.map(({ drmas, grpo }) => Math.log(measure(drmas) / measure(grpo))));
}

const spikesOf = ({ pairs }: RegimePairs) => compare(pairs.map(({ drmas, grpo }) => drmas.spikes - grpo.spikes));

const verdicts = (comparisons: readonly Comparison[]) => {
  const count = (verdict: Comparison['verdict']) => comparisons.filter((each) => each.verdict === verdict).length;
  return { lower: count('lower'), higher: count('higher'), open: count('no difference shown') };
};

const ratioText = ({ mean, interval, verdict }: Comparison) => {
  const [low, high] = [interval?.low, interval?.high].map((value = Number.NaN) => Math.exp(value).toFixed(2));
  return `${Math.exp(mean).toFixed(2)} [${low}, ${high}]${verdict === 'no difference shown' ? ': no difference shown' : ''}`;
};

const countText = ({ mean, interval, verdict }: Comparison) => {
  const signed = (value = Number.NaN) => `${value < 0 ? '-' : '+'}${Math.abs(value).toFixed(1)}`;
  const text = `${signed(mean)} [${signed(interval?.low)}, ${signed(interval?.high)}]`;
  return verdict === 'no difference shown' ? `${text}: no difference shown` : text;
};

/** One row a regime. */
export function stabilityTable(regimes: readonly RegimePairs[]): string {
  const rows = regimes.map((of) => [
    `\`${of.regime.id}\`, ${of.regime.agentName ?? of.regime.agent}`,
    ratioText(ratioOf(of, ({ norm }) => norm)),
    ratioText(ratioOf(of, ({ maxNorm }) => maxNorm)),
    countText(spikesOf(of)),
  ]);
  return table(['regime, agent', 'mean norm, ratio', 'largest norm, ratio', 'spikes a run, difference'], rows);
}

/** In how many regimes each measure is lower under Dr. MAS, higher, or not shown to differ. */
export function stabilityCounts(regimes: readonly RegimePairs[]): string {
  const line = (name: string, comparisons: readonly Comparison[]) => {
    const { lower, higher, open } = verdicts(comparisons);
    return [name, `${lower}`, `${higher}`, `${open}`];
  };
  return table(
    [`of ${regimes.length} regimes, under Dr. MAS`, 'lower', 'higher', 'no difference shown'],
    [
      line(
        'mean norm',
        regimes.map((of) => ratioOf(of, ({ norm }) => norm)),
      ),
      line(
        'largest norm',
        regimes.map((of) => ratioOf(of, ({ maxNorm }) => maxNorm)),
      ),
      line('spikes a run', regimes.map(spikesOf)),
    ],
  );
}

// The hunt for a collapse: research/plans/collapse.md.

/** The fall, and the rise, of a score that counts. */
const LARGE = 0.2;

/** A run that never rose cannot collapse. */
export const hasCollapsed = (regime: Regime, run: TrainResult) => !neverRose(regime, run) && fall(regime, run) >= LARGE;

export function neverRose(regime: Regime, { curve }: TrainResult): boolean {
  const scores = curve.map((point) => scoreAt(regime, point));
  return Math.max(...scores) - (scores[0] ?? Number.NaN) < LARGE;
}

/** The runs of GRPO and of Dr. MAS in a part at one rate, seed by seed. */
interface RatePairs {
  readonly name: string;
  readonly regime: Regime;
  readonly pairs: readonly { readonly grpo: TrainResult; readonly drmas: TrainResult }[];
}

/** The cells of parts whose variants are GRPO and Dr. MAS at several rates, as far as they have a pair. */
const cellsOf = (parts: readonly PartResults[]): RatePairs[] =>
  parts
    .flatMap((of) =>
      of.part.regimes.flatMap((regime) =>
        [...new Set(of.part.variants.map(({ learningRate = Number.NaN }) => learningRate))].map((rate) => ({
          name: `\`${regime.recipe === 'repair' ? 'repair' : 'escalation'}\` at ${rate}`,
          regime,
          pairs: of.part.seeds.flatMap((seed) => {
            const [grpo, drmas] = ['grpo', 'drmas'].map((id) => of.train(regime, of.variant(`${id}-at-${rate}`), seed));
            return grpo === undefined || drmas === undefined ? [] : [{ grpo, drmas }];
          }),
        })),
      ),
    )
    .filter(({ pairs }) => pairs.length > 0);

/** The cells, with the exact test of signs of their collapses by Holm, and whether one side has fewer. */
export function collapsesOf(parts: readonly PartResults[]) {
  const cells = cellsOf(parts);
  const differences = cells.map(({ regime, pairs }) =>
    pairs.map(({ grpo, drmas }) => Number(hasCollapsed(regime, grpo)) - Number(hasCollapsed(regime, drmas))),
  );
  const adjusted = holm(differences.map(signFlipP));
  return cells.map((cell, i) => {
    const p = adjusted[i] ?? 1;
    const difference = mean(differences[i] ?? []);
    const underDrmas = p > LARGEST_P ? 'no difference shown' : difference > 0 ? 'fewer' : 'more';
    return { ...cell, p, underDrmas };
  });
}

/** One row a cell: the runs that collapsed and those that never rose, with the exact test of signs by Holm. */
export function collapseTable(parts: readonly PartResults[]): string {
  const cells = collapsesOf(parts);
  if (cells.length === 0) return 'nothing yet';
  const rows = cells.map(({ name, regime, pairs, p, underDrmas }) => {
    const count = (side: 'grpo' | 'drmas', holds: typeof hasCollapsed) =>
      `${pairs.filter((pair) => holds(regime, pair[side])).length} of ${pairs.length}`;
    const last = (side: 'grpo' | 'drmas') =>
      `${(100 * mean(pairs.map((pair) => lastScore(regime, pair[side])))).toFixed(1)}`;
    const isWhole = pairs.length >= PAIRS_FOR_A_CLAIM;
    return [
      name,
      ...(['grpo', 'drmas'] as const).flatMap((side) => [
        count(side, hasCollapsed),
        count(side, neverRose),
        last(side),
      ]),
      exactText(p),
      isWhole ? underDrmas : 'so far',
    ];
  });
  const of = (name: string) => [`\`${name}\`: collapsed`, 'never rose', 'last score'];
  return table(['', ...of('grpo'), ...of('drmas'), 'p by Holm', 'collapses under `drmas`'], rows);
}

const CLIP_NORM = 1;
const EARLIER = 20;

/** The number of spikes among a run's norms, by the first three definitions. */
export const SPIKES: Readonly<Record<string, (norms: readonly number[]) => number>> = {
  '(a) above the running median': (norms) =>
    norms.filter((norm, i) => {
      const before = norms.slice(Math.max(0, i - EARLIER), i);
      return before.length === EARLIER && norm > CLIP_NORM && norm > 3 * median(before);
    }).length,
  '(b) above 10': (norms) => norms.filter((norm) => norm > 10).length,
  '(c) above the first steps': (norms) =>
    norms.slice(EARLIER).filter((norm) => norm > 5 * mean(norms.slice(0, EARLIER))).length,
};

/** One row a cell: the difference of each count of spikes, Dr. MAS minus GRPO, and the ratio of the largest norms. */
export function spikesTable(parts: readonly PartResults[]): string {
  const cells = cellsOf(parts);
  if (cells.length === 0) return 'nothing yet';
  const rows = cells.map(({ name, regime, pairs }) => {
    const normsOf = (run: TrainResult) => run.agents[regime.agent]?.norms ?? [];
    const each = (measure: (norms: readonly number[]) => number) =>
      pairs.map(({ grpo, drmas }) => [measure(normsOf(grpo)), measure(normsOf(drmas))] as const);
    const largest = each((norms) => Math.max(...norms)).map(([grpo, drmas]) => Math.log(drmas / grpo));
    return [
      name,
      ...Object.values(SPIKES).map((count) => countText(compare(each(count).map(([grpo, drmas]) => drmas - grpo)))),
      ratioText(compare(largest)),
    ];
  });
  return table(['`drmas` minus `grpo`, a run', ...Object.keys(SPIKES), '(d) largest norm, ratio'], rows);
}

/** The mean norm of the regime's agent by step, for each variant. */
export function normsFigure(results: PartResults): Figure {
  const { regimes, variants, title } = results.part;
  const series = regimes.flatMap((regime) =>
    variants.map(({ id }): Series => {
      const runs = results.runs(regime, results.variant(id)).map((run) => run.agents[regime.agent]?.norms ?? []);
      const steps = Math.min(...runs.map(({ length }) => length));
      const points =
        runs.length === 0
          ? []
          : Array.from({ length: steps }, (_, i) => ({
              x: i + 1,
              y: mean(runs.map((norms) => norms[i] ?? Number.NaN)),
            }));
      return { name: id, thin: true, points };
    }),
  );
  return { title, series, x: { label: 'step' }, y: { label: 'gradient norm, mean of runs', include: [0] } };
}

/** The interval in which a measured factor counts as the predicted one: within a quarter. */
const WITHIN: readonly [number, number] = [0.8, 1.25];

/**
 * The lemma's factor: measured from gradients, predicted from rewards, their ratio and the covariance term. One row for
 * each regime, agent and estimator; steps of a run count alike.
 */
export function lemmaTable(part: Part, results: Results): string {
  const of = new PartResults(part, results);
  const rows = part.regimes.flatMap((regime) =>
    part.variants.flatMap((variant) => {
      const runs = of.runs(regime, variant);
      const agents = [...new Set(runs.flatMap((run) => Object.keys(run.agents)))].sort();
      return agents.flatMap((agent) => {
        const factors = runs.flatMap((run) => factorsOf(run.agents[agent]?.measured) ?? []);
        if (factors.length === 0) return [];
        const ratio = compare(factors.map(({ measured, predicted }) => Math.log(measured / predicted)));
        const [measured, predicted] = [
          mean(factors.map((each) => each.measured)),
          mean(factors.map((each) => each.predicted)),
        ];
        const shown = agent === regime.agent ? (regime.agentName ?? agent) : agent;
        return [
          [
            `\`${regime.recipe
              .split('/')
              .at(-1)
              ?.replace(/(-1)?\.ts$/, '')}\`, ${shown}`,
            `\`${variant.id}\``,
            predicted.toFixed(2),
            measured.toFixed(2),
            signed(measured - predicted),
            withinText(ratio),
          ],
        ];
      });
    }),
  );
  if (rows.length === 0) return `*${part.title}: not run yet; \`npm run findings -- ${part.id}\` does.*`;
  const head = ['team, agent', 'estimator', 'predicted', 'measured', 'covariance term', 'measured / predicted'];
  return table(head, rows);
}

const signed = (value: number) => `${value < 0 ? '-' : '+'}${Math.abs(value).toFixed(2)}`;

/** The means over a run's measured steps. Undefined without such a step. */
function factorsOf(steps: AgentNorms['measured'] = []): { measured: number; predicted: number } | undefined {
  if (steps.length === 0) return undefined;
  return { measured: mean(steps.map((step) => step.measured)), predicted: mean(steps.map((step) => step.predicted)) };
}

/** A ratio with its interval, and whether the interval lies within a quarter of 1. */
function withinText({ mean: centre, interval, pairs }: Comparison): string {
  const ratio = Math.exp(centre).toFixed(2);
  if (interval === undefined) return `${ratio} (${pairs} of 3 seeds)`;
  const [low, high] = [Math.exp(interval.low), Math.exp(interval.high)];
  const [least, most] = WITHIN;
  const verdict = low >= least && high <= most ? 'holds' : high < least || low > most ? 'does not hold' : 'open';
  return `${ratio} [${low.toFixed(2)}, ${high.toFixed(2)}]: ${verdict}`;
}
