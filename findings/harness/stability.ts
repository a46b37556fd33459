/** The question of stability: gradient norms and their spikes under Dr. MAS and GRPO, in all regimes. */

import { mean } from '../../src/base/core/statistics.js';
import { type Comparison, compare, PartResults } from './analysis.js';
import { PAIRS_FOR_A_CLAIM, type Part, type Regime } from './declaration.js';
import { table } from './part-text.js';
import type { Results, TrainResult } from './stored-result.js';

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
