/**
 * Trust and split, a game whose players have opposing incentives. In each round two players get different hands of
 * rock, paper, scissors. Ten coins are worth 1 in all to the player with the winning hand, and a tenth of it to the
 * other. Each player sees only its own hand and names a hand, true or not; then both say at once how many coins they
 * keep. If the sum exceeds ten, the coins are divided in proportion. The pair earns most if the player with the losing
 * hand keeps nothing; that player earns most if it keeps all. It can only respond to the other's move a round earlier.
 *
 * In the demonstrations players tell the truth, keep all with the winning hand, and split at random with the losing
 * one. In three of ten cases after a round that they won they repeat the other's last split instead. Without that small
 * memory reinforcement has nothing to reinforce, and the players end as if each learnt only for itself. The weight 0
 * trains such players:
 *
 *     npx drmas ablate examples/trust-and-split/recipe.ts --vary advantage.weight=0,4 --seeds 5
 */
import { agent, defineRecipe, defineTeam, oneOf, tinyDecoder, user } from 'drmas';
import { z } from 'zod';

const hands = ['rock', 'paper', 'scissors'] as const;
const COINS = 10;
const keeps = ['0', '5', '10'] as const;
type Hand = (typeof hands)[number];

/** Rock beats scissors, paper rock, scissors paper. */
export const beats = (hand: Hand, other: Hand) => (hands.indexOf(hand) - hands.indexOf(other) + 3) % 3 === 1;
/** How many coins the first player gets where they want to keep so many. */
export const coins = (kept: number, other: number) => kept * Math.min(1, COINS / Math.max(1, kept + other));

const sampling = { maxTokens: 2 };
const player = (name: string) => agent({ system: `<${name}>`, parse: oneOf(...hands, ...keeps), sampling });
const handOf = (value: string | undefined) => hands.find((hand) => hand === value);
const keptOf = (value: string | undefined) => Number(keeps.find((kept) => kept === value) ?? 0);

export const team = defineTeam({
  name: 'trust and split',
  task: z.object({ deals: z.array(z.tuple([z.enum(hands), z.enum(hands)])) }),
  agents: { alice: player('alice'), bob: player('bob') },
  async play({ task: { deals }, agents: { alice, bob } }) {
    const rounds: { turns: [number, number]; values: [number, number]; kept: [number, number]; truths: number }[] = [];
    let last: [string, string] = ['', ''];
    for (const [envStep, [a, b]] of deals.entries()) {
      const said = await Promise.all([
        alice(`<say>${a}${last[0]}`, { envStep }),
        bob(`<say>${b}${last[1]}`, { envStep }),
      ]);
      const [fromAlice, fromBob] = said.map(({ value }) => handOf(value)) as [Hand | undefined, Hand | undefined];
      const split = await Promise.all([
        alice(`<split>${a}${fromBob ?? ''}${last[0]}`, { envStep }),
        bob(`<split>${b}${fromAlice ?? ''}${last[1]}`, { envStep }),
      ]);
      const kept = split.map(({ value }) => keptOf(value)) as [number, number];
      const isAlices = beats(a, b);
      rounds.push({
        turns: [split[0].turn, split[1].turn],
        values: [
          (coins(kept[0], kept[1]) / COINS) * (isAlices ? 1 : 0.1),
          (coins(kept[1], kept[0]) / COINS) * (isAlices ? 0.1 : 1),
        ],
        kept: isAlices ? kept : [kept[1], kept[0]],
        truths: (Number(fromAlice === a) + Number(fromBob === b)) / 2,
      });
      // A player remembers whether its own hand won, and the number of coins that the other kept.
      const [alices, bobs] = isAlices ? ['<won>', '<lost>'] : ['<lost>', '<won>'];
      last = [`${alices}${kept[1]}`, `${bobs}${kept[0]}`];
    }
    return { rounds };
  },
  reward: ({ outcome: { rounds } }) => ({
    // No agent learns from their joint reward.
    team: mean(rounds.map(({ values: [a, b] }) => a + b)),
    agents: { alice: 0, bob: 0 },
    turns: rounds.flatMap(({ turns, values }) => turns.map((turn, i) => ({ turn, value: values[i] ?? 0 }))),
  }),
  success: ({ outcome: { rounds } }) => mean(rounds.map(({ values: [a, b] }) => a + b)),
  metrics: ({ outcome: { rounds } }) => ({
    truth: mean(rounds.map(({ truths }) => truths)),
    winnerKeeps: mean(rounds.map(({ kept: [winner] }) => winner)),
    loserKeeps: mean(rounds.map(({ kept: [, loser] }) => loser)),
  }),
});

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

const ROUNDS = 4;
const FIRST_TEST = 600;

/** Every way to deal two different hands. */
const dealt = hands.flatMap((a) => hands.flatMap((b) => (a === b ? [] : [[a, b] as [Hand, Hand]])));
/** All games of four rounds by their number in base 6; a factor without common divisors shuffles them. */
const gameAt = (index: number) => {
  const number = (index * 577) % dealt.length ** ROUNDS;
  return Array.from({ length: ROUNDS }, (_, r) => dealt[Math.floor(number / dealt.length ** r) % dealt.length] ?? []);
};

interface Random {
  pick<T>(from: readonly [T, ...T[]]): T;
  chance(share: number): boolean;
}

/** The split in a demonstration with the losing hand: sometimes the other's last split, else a random one. */
function answered(random: Random, last: string) {
  const kept = /<won>(\d+)/.exec(last)?.[1];
  return kept !== undefined && random.chance(0.3) ? kept : random.pick(keeps);
}

export default defineRecipe({
  team,
  tasks: {
    name: 'deals',
    load: async (split) => {
      const at = (index: number) => {
        const game = split === 'train' ? index : FIRST_TEST + index;
        return { id: `game ${game}`, data: { deals: gameAt(game) as [Hand, Hand][] } };
      };
      return { name: `deals ${split}`, size: split === 'train' ? FIRST_TEST : dealt.length ** ROUNDS - FIRST_TEST, at };
    },
    trace(random: Random) {
      const name = random.pick(['alice', 'bob']);
      const [hand, heard] = random.pick(dealt as [[Hand, Hand]]);
      const last = random.chance(0.25) ? '' : `${random.pick(['<won>', '<lost>'])}${random.pick(keeps)}`;
      const message = random.chance(0.3)
        ? { asked: `<say>${hand}${last}`, response: hand }
        : { asked: `<split>${hand}${heard}${last}`, response: beats(hand, heard) ? '10' : answered(random, last) };
      return { agent: name, messages: [user(message.asked)], response: message.response };
    },
  },
  model: tinyDecoder({
    width: 32,
    layers: 2,
    heads: 2,
    feedForward: 64,
    context: 16,
    embeddingDeviation: 0.5,
    tokenizer: {
      type: 'symbols',
      symbols: ['<end>', '<ask>', '<alice>', '<bob>', '<say>', '<split>', '<won>', '<lost>', ...hands, ...keeps],
      stop: '<end>',
      endOfUser: '<ask>',
      endOfAssistant: '<end>',
    },
  }),
  policies: { alice: { optimizer: { learningRate: 1e-3 } }, bob: { optimizer: { learningRate: 1e-3 } } },
  advantage: { type: 'advantage-alignment', weight: 4 },
  warmStart: { steps: 400, batch: 64, learningRate: 4e-3 },
  training: { steps: 40, tasksPerStep: 8, groupSize: 16 },
  evaluation: { every: 40, tasks: 64, samples: 4 },
});
