/**
 * Teams that are evaluated with more members than they were trained with. The plan is research/plans/team-size.md.
 *
 *     DRMAS_KERNELS=native-avx2 npx tsx research/team-size/compare.ts [SEED ...] >> research/results/team-size.jsonl
 *     npx tsx research/team-size/compare.ts --page
 */
import { mean } from '@drmas/engine/math';
import { compare } from '../harness/analysis.js';
import { evaluationsOf } from '../harness/evaluations-of.js';
import { fillTables } from '../harness/fill-tables.js';
import { jsonLines } from '../harness/json-lines.js';
import { holm } from '../harness/p-values.js';
import { table } from '../harness/text.js';
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
const LABELS: Readonly<Record<Arm, string>> = {
  mixture: '2 to 5 workers (`mixture`)',
  roles: '2 to 5, a policy for each role (`roles`)',
  five: '5 workers (`five`)',
  all: '2 to 8 workers (`all`)',
};
const SIZES = [2, 3, 4, 5, 6, 7, 8];
/** The comparisons of the plan. */
const CLAIMS = [
  ['mixture', 'five'],
  ['mixture', 'roles'],
  ['all', 'mixture'],
] as const satisfies readonly (readonly [Arm, Arm])[];

/** The metrics of the evaluations before and after the training, such as `share 6`. */
interface Result {
  readonly seed: number;
  readonly arm: Arm;
  readonly before: Readonly<Record<string, number>>;
  readonly after: Readonly<Record<string, number>>;
}

async function resultOf(seed: number, arm: Arm): Promise<Result> {
  const { sizes, policies } = ARMS[arm];
  const evaluations = await evaluationsOf(crew(sizes, policies, seed));
  return { seed, arm, before: evaluations[0]?.metrics ?? {}, after: evaluations.at(-1)?.metrics ?? {} };
}

const share = (metrics: Result['after'], size: number) => 100 * (metrics[`share ${size}`] ?? Number.NaN);

/** Writes the tables of docs/research/team-sizes.md. */
async function writePage(results: readonly Result[]): Promise<void> {
  const shares = (when: 'before' | 'after', arm: Arm) =>
    SIZES.map((size) => mean(results.filter((each) => each.arm === arm).map((each) => share(each[when], size))));
  const unseen = (arm: Arm, seed: number) => {
    const found = results.find((result) => result.arm === arm && result.seed === seed);
    return mean([6, 7, 8].map((size) => share(found?.after ?? {}, size)));
  };
  const gains = CLAIMS.map(([a, b]) => compare(SEEDS.map((seed) => unseen(a, seed) - unseen(b, seed))));
  const adjusted = holm(gains.map(({ p }) => p));
  await fillTables('team-sizes.md', {
    shares: table(
      ['learns with', ...SIZES.map((size) => `${size} workers`)],
      [
        ['not yet', ...shares('before', 'mixture').map((value) => value.toFixed(1))],
        ...arms.map((arm) => [LABELS[arm], ...shares('after', arm).map((value) => value.toFixed(1))]),
      ],
    ),
    claims: table(
      ['6 to 8 workers', 'difference in points, ten pairs', 'p by Holm'],
      gains.map(({ mean: gain, interval }, i) => {
        const [low, high] = [interval?.low, interval?.high].map((value) => value?.toFixed(1));
        return [
          (CLAIMS[i] ?? []).join(' minus '),
          `${gain.toFixed(1)} [${low}, ${high}]`,
          (adjusted[i] ?? 1).toPrecision(2),
        ];
      }),
    ),
  });
}

const words = process.argv.slice(2);
if (words.includes('--page')) await writePage(jsonLines('research/results/team-size.jsonl'));
else
  for (const seed of words.length > 0 ? words.map(Number) : SEEDS)
    for (const arm of arms) console.log(JSON.stringify(await resultOf(seed, arm)));
