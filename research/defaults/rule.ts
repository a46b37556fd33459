/** The cells of the rule of the default, and its verdict (research/plans/defaults.md), from the stored results. */
import { mean } from '@drmas/engine/math';
import { signFlipP } from '../../src/runs/analysis/sign-flips.js';
import { type Cells, trainingGains } from '../creditbench/page.js';
import { type Comparison, compare, curveScore, LARGEST_P, lastScore, PartResults } from '../harness/analysis.js';
import type { Part, Question } from '../harness/declaration.js';
import { holm } from '../harness/p-values.js';
import type { Results } from '../harness/stored-result.js';

/** The estimators that were candidates for the default. */
export const CANDIDATES = ['ema', 'shrinkage'] as const;
/** The worst mean that a default may have. */
const WORST = -0.02;

export interface Cell {
  readonly label: string;
  /** Each candidate minus `drmas`. */
  readonly gains: readonly Comparison[];
  /** Runs whose last evaluation lies below their first, by estimator, `drmas` first. */
  readonly failures?: readonly string[];
}

function cellOf(part: Part, results: Results, label?: string): Cell {
  const of = new PartResults(part, results);
  const [regime] = part.regimes;
  if (regime === undefined) throw new Error(`${part.id} has no regime`);
  const variantOf = (name: string) => {
    const found = part.variants.find(({ id }) => id === name || id.startsWith(`${name}-at-`));
    if (found === undefined) throw new Error(`${part.id} has no ${name}`);
    return found;
  };
  return {
    label: label ?? String(regime.dose?.label),
    gains: CANDIDATES.map((name) => {
      const gains = of.gains(regime, variantOf(name), curveScore).map(({ gain }) => gain);
      return compare(gains, part.seeds.length);
    }),
    failures: ['drmas', ...CANDIDATES].map((name) => {
      const runs = of.runs(regime, variantOf(name));
      const worse = runs.filter(
        (run) => lastScore(regime, run) < lastScore(regime, { ...run, curve: run.curve.slice(0, 1) }),
      );
      return `${worse.length} of ${runs.length}`;
    }),
  };
}

/** The nine cells: seven regimes, the league at own rates, and the mean of CreditBench's families. */
export function cellsOfDefault(questions: readonly Question[], results: Results, credit: Cells): Cell[] {
  const bench = trainingGains(credit, 'drmas');
  const league = questions.flatMap(({ parts }) => parts).filter(({ id }) => id === 'league-pairs');
  return [
    ...(questions.find(({ id }) => id === 'defaults')?.parts ?? []).map((part) => cellOf(part, results)),
    ...league.map((part) => cellOf(part, results, 'the league, at own rates')),
    {
      label: 'CreditBench, mean of eight families',
      gains: CANDIDATES.map((name) => compare(bench.find(({ estimator }) => estimator === name)?.gains ?? [])),
    },
  ];
}

const isBehind = ({ interval, p }: Comparison) => (interval?.high ?? 0) < 0 && p <= LARGEST_P;

/** The verdict of the rule on each candidate. */
export function verdictsOf(cells: readonly Cell[]) {
  const all = CANDIDATES.map((name, i) => {
    const gains = cells.map((cell) => cell.gains[i] as Comparison);
    const means = gains.map((gain) => gain.mean);
    const behind = cells.filter((_, c) => isBehind(gains[c] as Comparison)).map(({ label }) => label);
    return { name, mean: mean(means), worst: Math.min(...means), p: signFlipP(means), behind };
  });
  const adjusted = holm(all.map(({ p }) => p));
  return all.map((one, i) => {
    const p = adjusted[i] ?? 1;
    const passes = one.mean > 0 && p <= LARGEST_P && one.behind.length === 0 && one.worst > WORST;
    return { ...one, p, passes };
  });
}
