/**
 * The table of docs/research/default.md, from the stored results, and the verdict of the rule that was declared before
 * them (research/plans/defaults.md).
 *
 *     npx tsx research/defaults/page.ts
 */
import { join } from 'node:path';
import { readCells } from '../creditbench/page.js';
import type { Comparison } from '../harness/analysis.js';
import { jobsOf } from '../harness/declaration.js';
import { fillTables } from '../harness/fill-tables.js';
import { readResults } from '../harness/stored-result.js';
import { exactText, table } from '../harness/text.js';
import { questions } from '../questions/index.js';
import { CANDIDATES, cellsOfDefault, verdictsOf } from './rule.js';

const root = join(import.meta.dirname, '../..');
const jobs = questions.flatMap(({ parts }) => parts.flatMap(jobsOf));
const results = await readResults(join(root, 'research/results'), jobs);
const cells = cellsOfDefault(questions, results, await readCells(root));

const points = (share = Number.NaN) => (100 * share).toFixed(1);
const text = ({ mean: gain, interval, p, pairs }: Comparison) =>
  `${points(gain)} [${points(interval?.low)}, ${points(interval?.high)}], ${pairs} pairs, p = ${exactText(p)}`;
await fillTables('default.md', {
  cells: table(
    [
      '',
      ...CANDIDATES.map((name) => `\`${name}\` minus \`drmas\`, points`),
      'runs that fell: `drmas`, `ema`, `shrinkage`',
    ],
    cells.map(({ label, gains, failures = [] }) => [label, ...gains.map(text), failures.join(', ')]),
  ),
  rule: table(
    ['', 'mean of nine cells', 'p, by Holm', 'worst cell', 'shown to be behind in', 'passes'],
    verdictsOf(cells).map(({ name, mean: gain, p, worst, behind, passes }) => [
      `\`${name}\``,
      points(gain),
      exactText(p),
      points(worst),
      behind.join('; ') || 'none',
      passes ? 'yes' : 'no',
    ]),
  ),
});
