/**
 * One team that reads the preference, against a team for each preference, at the same number of steps in all. The plan
 * is research/plans/preferences.md.
 *
 *     DRMAS_KERNELS=native-avx2 npx tsx research/preferences/compare.ts [SEED ...]
 *     npx tsx research/preferences/compare.ts --summary   (of research/results/preferences.jsonl)
 */
import { compare } from '../harness/analysis.js';
import { evaluationsOf } from '../harness/evaluations-of.js';
import { jsonLines } from '../harness/json-lines.js';
import { couriers, PREFERENCES } from './couriers.js';

const SEEDS = [11, 12, 13, 14, 15, 16, 17, 18, 19, 20];
const STEPS = 200;
type Result = Readonly<Record<'seed' | 'one' | 'several', number>>;

/** The last mean reward over the orders of the preferences. */
async function rewardOf(seed: number, preferences: readonly number[], steps: number): Promise<number> {
  const evaluations = await evaluationsOf(couriers(preferences, steps, seed));
  return evaluations.at(-1)?.reward ?? Number.NaN;
}

async function pairOf(seed: number): Promise<Result> {
  const one = await rewardOf(seed, PREFERENCES, STEPS);
  const several: number[] = [];
  for (const preference of PREFERENCES) several.push(await rewardOf(seed, [preference], STEPS / PREFERENCES.length));
  return { seed, one, several: several.reduce((sum, reward) => sum + reward, 0) / several.length };
}

const words = process.argv.slice(2);
if (words.includes('--summary')) {
  const results = jsonLines<Result>('research/results/preferences.jsonl');
  const mean = (key: 'one' | 'several') => results.reduce((sum, each) => sum + each[key], 0) / results.length;
  const { mean: gain, interval, p, pairs, verdict } = compare(results.map(({ one, several }) => 100 * (one - several)));
  console.log(
    `one team ${(100 * mean('one')).toFixed(1)}, a team for each preference ${(100 * mean('several')).toFixed(1)}`,
  );
  console.log(
    `${gain.toFixed(1)} [${interval?.low.toFixed(1)}, ${interval?.high.toFixed(1)}], ${pairs} pairs, p ${p.toPrecision(2)}: ${verdict}`,
  );
} else for (const seed of words.length > 0 ? words.map(Number) : SEEDS) console.log(JSON.stringify(await pairOf(seed)));
