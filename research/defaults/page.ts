/**
 * The table of docs/research/default.md, from the stored results, and the verdict of the rule that was declared before
 * them (research/plans/defaults.md).
 *
 *     npx tsx research/defaults/page.ts
 */
import { join } from 'node:path';
import { mean } from '@drmas/engine/math';
import { holm, signFlipP } from '../../src/runs/analysis/paired-interval.js';
import { readCells, trainingGains } from '../creditbench/page.js';
import { type Comparison, compare, curveScore, LARGEST_P, lastScore, PartResults } from '../harness/analysis.js';
import { jobsOf } from '../harness/declaration.js';
import { fillTables } from '../harness/fill-tables.js';
import { exactText, table } from '../harness/part-text.js';
import { readResults } from '../harness/stored-result.js';
import { questions } from '../questions/index.js';

const root = join(import.meta.dirname, '../..');
const OTHERS = ['ema', 'shrinkage'];
/** The worst mean that a default may have, in points. */
const WORST = -2;

interface Cell {
  readonly label: string;
  /** Each estimator minus `drmas`, in points. */
  readonly gains: readonly Comparison[];
  /** Runs whose last evaluation lies below their first, by estimator, `drmas` first. */
  readonly failures?: readonly string[];
}

const parts = questions.flatMap((question) => question.parts);
const results = await readResults(join(root, 'research/results'), parts.flatMap(jobsOf));

function cellOf(part: (typeof parts)[number], label?: string): Cell {
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
    gains: OTHERS.map((name) => {
      const gains = of.gains(regime, variantOf(name), curveScore).map(({ gain }) => 100 * gain);
      return compare(gains, part.seeds.length);
    }),
    failures: ['drmas', ...OTHERS].map((name) => {
      const runs = of.runs(regime, variantOf(name));
      const worse = runs.filter(
        (run) => lastScore(regime, run) < lastScore(regime, { ...run, curve: run.curve.slice(0, 1) }),
      );
      return `${worse.length} of ${runs.length}`;
    }),
  };
}

const found = (id: string) =>
  parts.filter((part) => part.id === id).map((part) => cellOf(part, 'the league, at own rates'));
const bench = trainingGains(await readCells(root), 'drmas');
const cells: readonly Cell[] = [
  ...(questions.find(({ id }) => id === 'defaults')?.parts ?? []).map((part) => cellOf(part)),
  ...found('league-pairs'),
  {
    label: 'CreditBench, mean of eight families',
    gains: OTHERS.map((name) => {
      const gains = bench.find(({ estimator }) => estimator === name)?.gains ?? [];
      return compare(gains.map((gain) => 100 * gain));
    }),
  },
];

const text = ({ mean: gain, interval, p, pairs }: Comparison) =>
  `${gain.toFixed(1)} [${interval?.low.toFixed(1)}, ${interval?.high.toFixed(1)}], ${pairs} pairs, p = ${exactText(p)}`;
const isBehind = ({ interval, p }: Comparison) => (interval?.high ?? 0) < 0 && p <= LARGEST_P;
const verdicts = OTHERS.map((name, i) => {
  const gains = cells.map((cell) => cell.gains[i] as Comparison);
  const means = gains.map((gain) => gain.mean);
  const behind = cells.filter((_, c) => isBehind(gains[c] as Comparison)).map(({ label }) => label);
  return { name, mean: mean(means), worst: Math.min(...means), p: signFlipP(means), behind };
});
const adjusted = holm(verdicts.map(({ p }) => p));
await fillTables('default.md', {
  cells: table(
    ['', ...OTHERS.map((name) => `\`${name}\` minus \`drmas\`, points`), 'runs that fell: `drmas`, `ema`, `shrinkage`'],
    cells.map(({ label, gains, failures = [] }) => [label, ...gains.map(text), failures.join(', ')]),
  ),
  rule: table(
    ['', 'mean of nine cells', 'p, by Holm', 'worst cell', 'shown to be behind in', 'passes'],
    verdicts.map(({ name, mean: gain, worst, behind }, i) => {
      const p = adjusted[i] ?? 1;
      const passes = gain > 0 && p <= LARGEST_P && behind.length === 0 && worst > WORST;
      return [
        `\`${name}\``,
        gain.toFixed(1),
        exactText(p),
        worst.toFixed(1),
        behind.join('; ') || 'none',
        passes ? 'yes' : 'no',
      ];
    }),
  ),
});
