/**
 * A captain that trains against an adversary, or also against earlier versions of it: how often the captain is right
 * under the adversary that harms it most, exactly. The plan is research/plans/pools-2.md.
 *
 *     npx tsx research/pools/red-team.ts [--seeds 11,12] > research/results/pools-2.jsonl
 *     npx tsx research/pools/red-team.ts --summary
 */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import redTeam, { team } from '../../examples/red-team/recipe.js';
import { defineRecipe, defineTeam, frozen, pool, train } from '../../src/index.js';
import { compare } from '../harness/analysis.js';

const SEEDS = [11, 12, 13, 14, 15, 16, 17, 18, 19, 20];
/** The adversary's learning rates; the captain has 0.1. */
const RATES = [0.05, 0.2, 0.8];
const [STEPS, EVERY] = [240, 10];
const RIGHT = 0.8;
const skies = ['sun', 'rain'] as const;
const reports = skies.flatMap((a) => skies.flatMap((b) => skies.map((c) => `${a}, ${b}, ${c}`)));

const arms: Readonly<Record<string, Omit<Parameters<typeof pool>[0], 'of'> | undefined>> = {
  self: undefined,
  uniform: { every: EVERY, keep: 24, draw: 'uniform' },
  prioritised: { every: EVERY, keep: 24, draw: 'prioritised' },
};

/** The red team, in which an earlier adversary plays half of the episodes. */
const withPast = defineTeam({
  ...team,
  name: 'red team with a past',
  agents: { ...team.agents, past: team.agents.adversary },
  play({ agents: { past, ...agents }, ...context }) {
    const adversary = context.random.chance(0.5) ? past : agents.adversary;
    return team.play({ ...context, agents: { ...agents, adversary } } as Parameters<typeof team.play>[0]);
  },
});

interface Result {
  readonly arm: string;
  readonly rate: number;
  readonly seed: number;
  /** How often the captain is right under the worst adversary: last, and on average over the second half. */
  readonly last: number;
  readonly late: number;
  /** The same without an attack. */
  readonly calm: number;
}

async function playRun(arm: string, rate: number, seed: number): Promise<Result> {
  const root = await mkdtemp(join(tmpdir(), 'pools-'));
  try {
    const options = arms[arm];
    const { policies, ...rest } = redTeam.input as never as { policies: Record<string, { optimizer: object }> };
    const recipe = defineRecipe({
      ...rest,
      ...(options && {
        team: withPast,
        assign: {
          scout: 'scout',
          adversary: 'adversary',
          captain: 'captain',
          past: frozen(pool({ of: 'adversary', ...options })),
        },
      }),
      policies: { ...policies, adversary: { ...policies.adversary, optimizer: { learningRate: rate } } },
      seed,
      training: { steps: STEPS, tasksPerStep: 8, groupSize: 8, checkpointEvery: EVERY, keepCheckpoints: STEPS },
      evaluation: { every: STEPS, tasks: 2, samples: 1 },
    } as never);
    const { run } = await train(recipe, { run: join(root, 'run'), threads: 1 });
    const names = (await readdir(join(run, 'checkpoints'))).filter((name) => name.startsWith('step-')).sort();
    const each = await Promise.all(names.map((name) => rightRates(join(run, 'checkpoints', name))));
    const half = each.slice(each.length / 2);
    return {
      ...{ arm, rate, seed },
      last: each.at(-1)?.worst ?? Number.NaN,
      late: half.reduce((sum, { worst }) => sum + worst, 0) / half.length,
      calm: each.at(-1)?.calm ?? Number.NaN,
    };
  } finally {
    await rm(root, { recursive: true });
  }
}

/** P(choice | feature) of a table. */
async function tableOf(folder: string, features: readonly string[]): Promise<ReadonlyMap<string, readonly number[]>> {
  const { logits } = JSON.parse(await readFile(join(folder, 'choices.json'), 'utf8')) as { logits: number[][] };
  return new Map(
    features.map((feature, row) => {
      const weights = (logits[row] ?? []).map(Math.exp);
      const total = weights.reduce((sum, weight) => sum + weight, 0);
      return [feature, weights.map((weight) => weight / total)];
    }),
  );
}

/** How often the captain is right under the adversary that harms it most, and without an attack. */
async function rightRates(checkpoint: string): Promise<{ readonly worst: number; readonly calm: number }> {
  const scout = await tableOf(join(checkpoint, 'scout'), skies);
  const captain = await tableOf(join(checkpoint, 'captain'), reports);
  const other = (sky: string) => (sky === 'sun' ? 'rain' : 'sun');
  /** The probability of a right order, summed over skies and instruments, when the scout's word is `seen`. */
  const right = (seen: string, rewrite: number) => {
    let sum = 0;
    for (const sky of skies)
      for (const first of skies)
        for (const second of skies) {
          const told = scout.get(sky)?.[0] ?? 0.5;
          const chance =
            0.5 *
            (seen === 'sun' ? told : 1 - told) *
            (first === sky ? RIGHT : 1 - RIGHT) *
            (second === sky ? RIGHT : 1 - RIGHT);
          const words = [seen, first, second].map((word, place) => (place + 1 === rewrite ? other(word) : word));
          const sails = captain.get(words.join(', '))?.[0] ?? 0.5;
          sum += chance * (sky === 'sun' ? sails : 1 - sails);
        }
    return sum;
  };
  const over = (rate: (seen: string) => number) => skies.reduce((sum, seen) => sum + rate(seen), 0);
  return {
    worst: over((seen) => Math.min(...[0, 1, 2, 3].map((rewrite) => right(seen, rewrite)))),
    calm: over((seen) => right(seen, 0)),
  };
}

async function summary(): Promise<void> {
  const text = await readFile(join(import.meta.dirname, '../results/pools-2.jsonl'), 'utf8');
  const results = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Result);
  const find = (arm: string, rate: number, seed: number) =>
    results.find((each) => each.arm === arm && each.rate === rate && each.seed === seed);
  const points = (value: number) => `${value > 0 ? '+' : ''}${(100 * value).toFixed(1)}`;
  const rows = [
    ['late', RATES] as const,
    ...(['late', 'last', 'calm'] as const).flatMap((key) => RATES.map((rate) => [key, [rate]] as const)),
  ];
  for (const [key, rates] of rows)
    for (const arm of ['uniform', 'prioritised']) {
      const gains = SEEDS.flatMap((seed) => {
        const own = rates.map((rate) => find(arm, rate, seed)?.[key]);
        const self = rates.map((rate) => find('self', rate, seed)?.[key]);
        const gain =
          own.reduce<number>((sum, value, i) => sum + ((value ?? Number.NaN) - (self[i] ?? Number.NaN)), 0) /
          rates.length;
        return Number.isNaN(gain) ? [] : [gain];
      });
      const { mean, interval, p, pairs, verdict } = compare(gains);
      const bounds = `[${points(interval?.low ?? Number.NaN)}, ${points(interval?.high ?? Number.NaN)}]`;
      console.log(
        `${key}, rates ${rates.join(' ')}, ${arm} minus self: ${points(mean)} points ${bounds}, ${pairs} pairs, p ${p.toPrecision(2)}: ${verdict}`,
      );
    }
}

const { values } = parseArgs({ options: { seeds: { type: 'string' }, summary: { type: 'boolean' } } });
if (values.summary === true) await summary();
else
  for (const seed of values.seeds?.split(',').map(Number) ?? SEEDS)
    for (const rate of RATES)
      for (const arm of Object.keys(arms)) console.log(JSON.stringify(await playRun(arm, rate, seed)));
