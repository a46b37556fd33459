/**
 * How often Student's t over a few pairs shows a loss below 2 points if the loss is 2 points, so that each such claim
 * is false: by the rule of the study, and with gains counted for no more than the margin. In some cases the scores of
 * runs spread normally, in others a run fails now and then.
 *
 *     npx tsx research/shape/level.ts   (writes the table of docs/research/shape.md)
 */
import { RandomStream } from '@drmas/engine/math';
import { fillTables } from '../harness/fill-tables.js';
import { oneSidedP } from '../harness/p-values.js';
import { table as markdown } from '../harness/text.js';
import { ALPHA, leastSpread } from './verdict.js';

const [MARGIN, EPISODES, STUDIES] = [0.02, 192, 4000];
const PAIRS = [5, 10] as const;
const least = leastSpread({ margin: MARGIN, episodes: EPISODES });

/** The scores of a run of the whole team and of the smaller one, as probabilities of success. */
type Scores = (random: RandomStream) => readonly [whole: number, smaller: number];

const normal =
  (deviation: number): Scores =>
  (random) => [0.8 + deviation * random.normal(), 0.8 - MARGIN + deviation * random.normal()];

/** Runs of the teams fail with these probabilities, and a failed run loses `loss`. */
const failing =
  (whole: number, smaller: number, loss: number): Scores =>
  (random) => [0.98 - (random.chance(whole) ? loss : 0), 0.98 - (random.chance(smaller) ? loss : 0)];

const FAILURES = [
  ...[[0, 0.04, 0.5], [0, 0.1, 0.2], [0, 0.2, 0.1], [0.05, 0.09, 0.5]], // biome-ignore format: rows
  ...[[0.1, 0.12, 0.95], [0.1, 0.14, 0.5], [0.1, 0.2, 0.2], [0.2, 0.24, 0.5]], // biome-ignore format: rows
] as [number, number, number][];

const points = (share: number) => Math.round(100 * share);
const cases: readonly (readonly [string, Scores])[] = [
  ...[0, 0.02, 0.05, 0.1].map(
    (deviation) => [`scores spread by ${points(deviation)} points`, normal(deviation)] as const,
  ),
  ...FAILURES.map(([whole, smaller, loss]) => {
    const says = `the whole team fails in ${points(whole)} of 100 runs, the smaller in ${points(smaller)}`;
    return [`${says}, by ${points(loss)} points`, failing(whole, smaller, loss)] as const;
  }),
];

/** The shares of studies that claim a loss below the margin: by the plain rule, and by the clipped one. */
function falseClaims(name: string, scores: Scores, pairs: number): readonly [plain: number, clipped: number] {
  const random = new RandomStream('level', name, pairs);
  const measured = (probability: number) => {
    let solved = 0;
    for (let i = 0; i < EPISODES; i++) if (random.chance(probability)) solved++;
    return solved / EPISODES;
  };
  let [plain, clipped] = [0, 0];
  for (let study = 0; study < STUDIES; study++) {
    const differences = Array.from({ length: pairs }, () => {
      const [whole, smaller] = scores(random);
      return measured(smaller) - measured(whole);
    });
    const isShown = (values: readonly number[]) => oneSidedP(values, -MARGIN, least) <= ALPHA;
    if (isShown(differences)) plain++;
    if (isShown(differences.map((difference) => Math.min(difference, MARGIN)))) clipped++;
  }
  return [plain / STUDIES, clipped / STUDIES];
}

const percent = (share: number) => `${(100 * share).toFixed(1)} %`;
const table = markdown(
  ['case', ...PAIRS.flatMap((pairs) => [`plain, ${pairs} pairs`, `clipped, ${pairs} pairs`])],
  cases.map(([name, scores]) => [name, ...PAIRS.flatMap((pairs) => falseClaims(name, scores, pairs).map(percent))]),
);
await fillTables('shape.md', { level: table });
