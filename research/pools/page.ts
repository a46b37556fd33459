/**
 * The tables of docs/research/pools.md, from the stored results. The programs of the runs needed `pool`, which went out
 * by the plan: they are in the history, below the commits that declare the plans.
 *
 *     npx tsx research/pools/page.ts
 */
import { compare } from '../harness/analysis.js';
import { fillTables } from '../harness/fill-tables.js';
import { jsonLines } from '../harness/json-lines.js';
import { table } from '../harness/text.js';

interface Run {
  readonly arm: string;
  readonly rate: number;
  readonly seed: number;
  readonly late: number;
  readonly last: number;
  readonly average?: number;
  readonly calm?: number;
}
type Score = 'late' | 'last' | 'average' | 'calm';

/** A row: an arm against play against the latest self, by the mean over rates of each seed. */
function rowOf(runs: readonly Run[], what: string, arm: string, score: Score, scale: number): readonly string[] {
  const bySeed = (of: string, seed: number) => {
    const values = runs.filter((run) => run.arm === of && run.seed === seed).map((run) => run[score] ?? Number.NaN);
    return values.reduce((sum, value) => sum + value, 0) / values.length;
  };
  const seeds = [...new Set(runs.map(({ seed }) => seed))];
  const { mean, interval, p } = compare(seeds.map((seed) => scale * (bySeed(arm, seed) - bySeed('self', seed))));
  const digits = scale === 1 ? 3 : 1;
  const bounds = interval === undefined ? '' : ` [${interval.low.toFixed(digits)}, ${interval.high.toFixed(digits)}]`;
  return [what, `\`${arm}\``, `${mean.toFixed(digits)}${bounds}`, p.toPrecision(2)];
}

const [game, team] = [jsonLines<Run>('research/results/pools.jsonl'), jsonLines<Run>('research/results/pools-2.jsonl')];
const head = ['', 'arm', 'minus `self`, ten pairs', 'exact p'];
const pools = ['uniform', 'prioritised'];
const atRate = (rate: number) => team.filter((run) => run.rate === rate);
await fillTables('pools.md', {
  game: table(
    head,
    ['latest', ...pools].flatMap((arm) => [
      rowOf(game, 'last half', arm, 'late', 1),
      rowOf(game, 'average policy', arm, 'average', 1),
    ]),
  ),
  team: table(
    head,
    pools.flatMap((arm) => [
      rowOf(team, 'last half, all rates (primary for `uniform`)', arm, 'late', 100),
      ...[0.05, 0.2, 0.8].map((rate) => rowOf(atRate(rate), `rate ${rate}`, arm, 'late', 100)),
      rowOf(team, 'last step', arm, 'last', 100),
      rowOf(team, 'without an attack', arm, 'calm', 100),
    ]),
  ),
});
