/**
 * Policies that decide when to stop, whom to ask and how many to call: tables of logits in loops that gain nothing and
 * in the families of decisions of CreditBench, trained by estimators with and without replays for an equal number of
 * calls, and evaluated exactly. The plan is research/plans/stopping.md.
 *
 *     npx tsx research/stopping/decision-loops.ts > research/results/stopping.jsonl
 */
import { parseArgs } from 'node:util';
import { mean, RandomStream } from '@drmas/engine/math';
import type { TurnRecord } from '@drmas/engine/nouns';
import { TurnBatch } from '../../src/method/advantage/turn-batch.js';
import { familyOf, openNamed } from '../creditbench/cells.js';
import { type Family, START } from '../creditbench/families.js';
import {
  type Call,
  codes,
  draw,
  type End,
  type Move,
  type Node,
  ownReward,
  type Policy,
  playFrom,
  rewardOf,
  signs,
  skilled,
} from '../creditbench/game.js';

/** Calls that a training may sample, those of replays included. */
const BUDGET = 24_000;
const STEP = { tasks: 8, episodes: 8 } as const;

/** The most turns of a loop that gains nothing. */
const MOST = 6;

/** A loop that gains nothing: each further turn has a price, taken off the reward or as the own reward of the turn. */
const vainLoop = (id: string, isOwn: boolean): Family => ({
  id,
  property: 'going on gains nothing',
  knob: { means: 'the price of a further turn', least: 0, most: 0.5, whole: false, usual: 0.1 },
  assign: { looker: 'looker' },
  start: { looker: 1 / codes.length },
  begin({ difficulty }) {
    const finish = (turns: number): Node => ({
      kind: 'chance',
      probability: 0.5,
      state: `luck ${turns}`,
      after(isLucky) {
        const [solved, prices] = [isLucky ? 1 : 0, new Array<number>(turns).fill(-difficulty)];
        const team = { solved, ...(isOwn ? {} : { prices: -difficulty * turns }) };
        return { kind: 'end', team, score: solved, ...(isOwn && { turns: [0, ...prices] }) };
      },
    });
    const from = (turn: number): Node => ({
      kind: 'call',
      agent: 'looker',
      prompt: `any any r${turn} loop `,
      round: turn,
      right: 0,
      state: `loop ${turn}`,
      after: (choice) => (choice < codes.length / 2 || turn + 1 === MOST ? finish(turn) : from(turn + 1)),
    });
    return from(0);
  },
});

const GAMES: readonly { readonly family: Family; readonly arms: readonly string[] }[] = [
  { family: vainLoop('vain-loop, price in the reward', false), arms: ['natural', 'whole-return'] },
  { family: vainLoop('vain-loop, price of the turn', true), arms: ['natural', 'whole-return'] },
  ...['chosen-stop', 'whom-to-ask', 'spawn'].map((id) => ({
    family: familyOf(id),
    arms: ['natural', 'whole-return', 'magrpo', 'counterfactual', 'continue'],
  })),
];

const softmax = (logits: readonly number[]) => {
  const weights = logits.map((logit) => Math.exp(logit - Math.max(...logits)));
  const sum = weights.reduce((a, b) => a + b, 0);
  return weights.map((weight) => weight / sum);
};

/** A row of logits for each policy and prompt. An owner decides nothing, so prompts differ without it. */
class Table {
  readonly #rows = new Map<string, number[]>();
  readonly #family: Family;

  constructor(family: Family) {
    this.#family = family;
  }

  row(call: Call): number[] {
    const key = `${this.#family.assign[call.agent]} ${call.prompt.split(' ').slice(1).join(' ')}`;
    const known = this.#rows.get(key);
    if (known !== undefined) return known;
    const start = skilled((agent) => this.#family.start[agent] ?? START)(call).map(Math.log);
    this.#rows.set(key, start);
    return start;
  }

  readonly policy: Policy = (call) => softmax(this.row(call));
}

const teamReward = ({ team }: End) => Object.values(team).reduce((sum, part) => sum + part, 0);
const returnOf = (end: End) => (end.turns ?? []).reduce((sum, own) => sum + own, teamReward(end));

/** Who acts after a turn, until its agent acts again or nobody does: what the turn decided. */
function followers(moves: readonly Move[], turn: number): string {
  const agent = moves[turn]?.call.agent;
  const later = moves.slice(turn + 1).map(({ call }) => call.agent);
  const again = agent === undefined ? -1 : later.indexOf(agent);
  return again < 0 ? [...later, 'the end'].join(' ') : later.slice(0, again + 1).join(' ');
}

/** A turn as the arms see it. `branch` plays the episode again from the turn on, and counts its calls. */
interface Seen {
  readonly record: TurnRecord;
  readonly whole: number;
  readonly decided: string;
  readonly move: Move;
  branch(): { readonly whole: number; readonly decided: string };
}

/** The difference from the mean over the turns with the same name. */
function lessMean(seen: readonly Seen[], nameOf: (turn: Seen) => string): number[] {
  const groups = new Map<string, number[]>();
  for (const turn of seen) groups.set(nameOf(turn), [...(groups.get(nameOf(turn)) ?? []), turn.whole]);
  return seen.map((turn) => turn.whole - mean(groups.get(nameOf(turn)) ?? []));
}

const byEstimator = (name: string) => (seen: readonly Seen[]) => {
  const advantages = openNamed(name).compute(new TurnBatch(seen.map(({ record }) => record)));
  return seen.map((_, i) => advantages[i] as number);
};

/** The agents whose turns decide who acts next. */
const DECIDERS: ReadonlySet<string> = new Set(['looker', 'lead']);

/** The arms: each gives turns their advantages. */
const ARMS: Readonly<Record<string, (seen: readonly Seen[]) => number[]>> = {
  natural: byEstimator('drmas,spread=none'),
  'whole-return': (seen) => lessMean(seen, ({ record: { task, agent } }) => `${task} ${agent}`),
  magrpo: byEstimator('magrpo'),
  /** Each turn less one replay from it on, all rewards that follow counted. */
  counterfactual: (seen) => seen.map(({ whole, branch }) => whole - branch().whole),
  /**
   * A decision gets the difference from a replay that decided otherwise, and its text the difference from the mean of
   * turns that decided alike. Agents that decide nothing get their whole return less its mean.
   */
  continue(seen) {
    const texts = lessMean(seen, ({ record: { task, agent }, decided }) =>
      DECIDERS.has(agent) ? `${task} ${agent} ${decided}` : `${task} ${agent}`,
    );
    return seen.map(({ record: { agent }, whole, decided, branch }, i) => {
      const other = DECIDERS.has(agent) ? branch() : undefined;
      const decision = other === undefined || other.decided === decided ? 0 : whole - other.whole;
      return decision + (texts[i] as number);
    });
  },
};

/** The exact expectation of the quality, the return and the number of calls of an episode. */
function expected(family: Family, policy: Policy): { quality: number; return: number; calls: number } {
  const known = new Map<string, readonly [number, number, number]>();
  const from = (node: Node): readonly [number, number, number] => {
    if (node.kind === 'end') return [node.score, returnOf(node), 0];
    const stored = known.get(node.state);
    if (stored !== undefined) return stored;
    const branches: (readonly [number, Node])[] =
      node.kind === 'chance'
        ? [
            [node.probability, node.after(true)],
            [1 - node.probability, node.after(false)],
          ]
        : policy(node).map((probability, choice) => [probability, node.after(choice)]);
    const sums: [number, number, number] = [0, 0, node.kind === 'call' ? 1 : 0];
    for (const [probability, next] of branches) {
      const values = from(next);
      for (const i of [0, 1, 2] as const) sums[i] += probability * values[i];
    }
    known.set(node.state, sums);
    return sums;
  };
  const ofSigns = signs.map((_, sign) => {
    known.clear();
    return from(family.begin({ sign, owner: 0, difficulty: family.knob.usual }));
  });
  const [quality, whole, calls] = ([0, 1, 2] as const).map((i) => mean(ofSigns.map((values) => values[i])));
  return { quality: quality as number, return: whole as number, calls: calls as number };
}

/** Trains a table from a seed until the budget of calls is used. */
function trained(family: Family, arm: string, rate: number, seed: number) {
  const table = new Table(family);
  const advantagesOf = ARMS[arm] as (seen: readonly Seen[]) => number[];
  let calls = 0;
  for (let step = 0; calls < BUDGET; step++) {
    const seen: Seen[] = [];
    for (let task = 0; task < STEP.tasks; task++) {
      const chosen = new RandomStream('stopping', family.id, seed, step, task);
      const root = family.begin({ sign: chosen.integer(0, signs.length - 1), owner: 0, difficulty: family.knob.usual });
      for (let episode = 0; episode < STEP.episodes; episode++) {
        const random = new RandomStream('stopping', family.id, seed, step, task, episode);
        const play = (node: Node) => playFrom(node, (call) => draw(table.policy, call, random), random);
        const { moves, end } = play(root);
        calls += moves.length;
        for (const [turn, move] of moves.entries()) {
          const { agent, round } = move.call;
          const own = ownReward(end, turn);
          const isLast = turn === moves.length - 1;
          seen.push({
            move,
            whole: returnOf(end),
            decided: followers(moves, turn),
            record: {
              ...{ task: `${task}`, episode: `${episode}`, agent, turn, envStep: round },
              ...{ outcome: teamReward(end), reward: rewardOf(end, agent) + own },
              stepReward: own + (isLast ? teamReward(end) : 0),
            },
            branch() {
              const again = play(move.call);
              calls += again.moves.length;
              return { whole: returnOf(again.end), decided: followers(again.moves, 0) };
            },
          });
        }
      }
    }
    const advantages = advantagesOf(seen);
    const changes = seen.map(({ move: { call, choice } }, i) => {
      const probabilities = table.policy(call);
      const size = (rate * (advantages[i] as number)) / seen.length;
      return { row: table.row(call), by: probabilities.map((p, k) => size * ((k === choice ? 1 : 0) - p)) };
    });
    for (const { row, by } of changes) for (const [k, change] of by.entries()) row[k] = (row[k] as number) + change;
  }
  return { ...expected(family, table.policy), sampled: calls };
}

const RATES = [10, 30, 100] as const;
const TUNING = [901, 902] as const;
const PAIRS = Array.from({ length: 10 }, (_, i) => 11 + i);

/** The rate with the highest mean return on seeds that the pairs do not use. */
function tunedRate(family: Family, arm: string): number {
  const scores = RATES.map((rate) => mean(TUNING.map((seed) => trained(family, arm, rate, seed).return)));
  return RATES[scores.indexOf(Math.max(...scores))] as number;
}

const { values } = parseArgs({ options: { rate: { type: 'string' }, seed: { type: 'string' } } });
for (const { family, arms } of GAMES)
  for (const arm of arms) {
    const rate = values.rate === undefined ? tunedRate(family, arm) : Number(values.rate);
    for (const seed of values.seed === undefined ? PAIRS : [Number(values.seed)])
      process.stdout.write(
        `${JSON.stringify({ game: family.id, arm, rate, seed, ...trained(family, arm, rate, seed) })}\n`,
      );
  }
