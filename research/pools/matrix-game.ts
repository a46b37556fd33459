/**
 * Self-play in a matrix game: the exploitability of a table of choices, exact, under pools of earlier versions. The
 * plan is research/plans/pools.md.
 *
 *     npx tsx research/pools/matrix-game.ts ARM RATE SEED > result.json
 */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { agent, choiceTable, defineRecipe, defineTeam, frozen, oneOf, pool, train } from '../../src/index.js';

const HANDS = ['rock', 'paper', 'scissors'] as const;
/** The gain of a row's hand against a column's: rock crushes scissors for 2. The equilibrium is 1:2:1. */
const GAIN = [
  [0, -1, 2],
  [1, 0, -1],
  [-2, 1, 0],
] as const;
const STEPS = 300;
const EVERY = 10;

export const arms = {
  self: { every: 1, keep: 1, draw: 'latest' },
  latest: { every: EVERY, keep: 1, draw: 'latest' },
  uniform: { every: EVERY, keep: 30, draw: 'uniform' },
  prioritised: { every: EVERY, keep: 30, draw: 'prioritised' },
} as const;

const hand = () => agent({ parse: oneOf(...HANDS), sampling: { maxTokens: 1 } });
const team = defineTeam({
  name: 'duel',
  task: z.object({ round: z.number() }),
  agents: { player: hand(), past: hand() },
  async play({ agents: { player, past } }) {
    const [own, other] = [await player('show'), await past('show')];
    return GAIN[HANDS.indexOf(own.value ?? 'rock')]?.[HANDS.indexOf(other.value ?? 'rock')] ?? 0;
  },
  reward: ({ outcome }) => ({ team: 0, agents: { player: outcome, past: -outcome } }),
});

/** The most that an opponent earns against a mixture of hands; the value of the game is 0. */
export const exploitability = (mixture: readonly number[]): number =>
  Math.max(...GAIN.map((row) => row.reduce<number>((sum, gain, h) => sum + gain * (mixture[h] ?? 0), 0)));

const softmax = (logits: readonly number[]) => {
  const weights = logits.map((logit) => Math.exp(logit - Math.max(...logits)));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => weight / total);
};

const [arm, rate, seed] = process.argv.slice(2);
const root = await mkdtemp(join(tmpdir(), 'pools-'));
const recipe = defineRecipe({
  name: 'duel',
  team,
  tasks: {
    name: 'rounds',
    load: async () => ({ name: 'rounds', size: 16, at: (round: number) => ({ id: `t${round}`, data: { round } }) }),
  },
  assign: { player: 'player', past: frozen(pool({ of: 'player', ...arms[arm as keyof typeof arms] })) },
  model: choiceTable({ choices: HANDS }),
  policies: { player: { optimizer: { type: 'sgd', learningRate: Number(rate) } } },
  seed: Number(seed),
  training: { steps: STEPS, tasksPerStep: 16, groupSize: 8, checkpointEvery: EVERY, keepCheckpoints: STEPS },
  evaluation: { every: STEPS, tasks: 1, samples: 1 },
});
const { run } = await train(recipe, { run: join(root, 'run'), threads: 1 });
const checkpoints = (await readdir(join(run, 'checkpoints'))).filter((name) => name.startsWith('step-')).sort();
const mixtures = await Promise.all(
  checkpoints.map(async (name) => {
    const { logits } = JSON.parse(await readFile(join(run, 'checkpoints', name, 'player', 'choices.json'), 'utf8'));
    return softmax(logits[0]);
  }),
);
const late = mixtures.slice(mixtures.length / 2);
const average = HANDS.map((_, h) => late.reduce((sum, mixture) => sum + (mixture[h] ?? 0), 0) / late.length);
const ofLate = late.map(exploitability);
process.stdout.write(
  `${JSON.stringify({
    arm,
    rate: Number(rate),
    seed: Number(seed),
    last: exploitability(mixtures.at(-1) ?? []),
    late: ofLate.reduce((sum, each) => sum + each, 0) / ofLate.length,
    average: exploitability(average),
    mixture: mixtures.at(-1),
  })}\n`,
);
await rm(root, { recursive: true });
