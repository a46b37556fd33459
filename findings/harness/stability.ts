/** The question of stability: gradient norms and their spikes under Dr. MAS and GRPO, in all regimes. */

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
