/**
 * Teams that are evaluated with more members than they were trained with. The plan is research/plans/team-size.md.
 *
 *     DRMAS_KERNELS=native-avx2 npx tsx research/team-size/compare.ts [SEED ...] >> research/results/team-size.jsonl
 *     npx tsx research/team-size/compare.ts --summary
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { train } from '../../src/index.js';
import { compare } from '../harness/analysis.js';
import { crew } from './crew.js';

const SEEDS = [11, 12, 13, 14, 15, 16, 17, 18, 19, 20];
const ARMS = {
  mixture: { sizes: [2, 3, 4, 5], policies: 'shared' },
  roles: { sizes: [2, 3, 4, 5], policies: 'roles' },
  five: { sizes: [5], policies: 'shared' },
  all: { sizes: [2, 3, 4, 5, 6, 7, 8], policies: 'shared' },
} as const;
type Arm = keyof typeof ARMS;
const arms = Object.keys(ARMS) as Arm[];

/** The metrics of the evaluations before and after the training, such as `share 6`. */
interface Result {
  readonly seed: number;
  readonly arm: Arm;
  readonly before: Readonly<Record<string, number>>;
  readonly after: Readonly<Record<string, number>>;
}

async function resultOf(seed: number, arm: Arm): Promise<Result> {
  const root = await mkdtemp(join(tmpdir(), 'team-size-'));
  try {
    const { sizes, policies } = ARMS[arm];
    const { run } = await train(crew(sizes, policies, seed), { run: join(root, 'run'), threads: 1 });
    const lines = (await readFile(join(run, 'events.jsonl'), 'utf8')).trim().split('\n');
    const evaluations = lines.map((line) => JSON.parse(line)).filter(({ type }) => type === 'evaluation');
    return { seed, arm, before: evaluations[0].metrics, after: evaluations.at(-1).metrics };
  } finally {
    await rm(root, { recursive: true });
  }
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
const share = (metrics: Result['after'], size: number) => 100 * (metrics[`share ${size}`] ?? Number.NaN);

function print(results: readonly Result[]): void {
  for (const arm of arms) {
    const of = results.filter((result) => result.arm === arm);
    const row = (when: 'before' | 'after') =>
      [2, 3, 4, 5, 6, 7, 8].map((size) => mean(of.map((result) => share(result[when], size))).toFixed(1)).join('  ');
    console.log(`${arm} (${of.length}): ${row('before')} -> ${row('after')}`);
  }
  const score = (arm: Arm, seed: number) => {
    const found = results.find((result) => result.arm === arm && result.seed === seed);
    return mean([6, 7, 8].map((size) => share(found?.after ?? {}, size)));
  };
  for (const [a, b] of [
    ['mixture', 'five'],
    ['mixture', 'roles'],
    ['all', 'mixture'],
  ] as const) {
    const { mean: gain, interval, p, pairs } = compare(SEEDS.map((seed) => score(a, seed) - score(b, seed)));
    const digits = [gain, interval?.low, interval?.high].map((value) => value?.toFixed(1));
    console.log(`${a} minus ${b}: ${digits[0]} [${digits[1]}, ${digits[2]}], ${pairs} pairs, p ${p.toPrecision(2)}`);
  }
}

const words = process.argv.slice(2);
if (words.includes('--summary')) {
  const text = await readFile(join(import.meta.dirname, '../results/team-size.jsonl'), 'utf8');
  print(
    text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  );
} else
  for (const seed of words.length > 0 ? words.map(Number) : SEEDS)
    for (const arm of arms) console.log(JSON.stringify(await resultOf(seed, arm)));
