/** How well an estimator's advantages agree with the right credit, on episodes of policies that do not learn. */
import { mean, RandomStream } from '@drmas/engine/math';
import type { TurnRecord } from '@drmas/engine/nouns';
import { estimateStep } from '../../src/method/advantage/estimate.js';
import type { EstimatorState, OpenEstimator } from '../../src/method/advantage.js';
import { type Family, START, tickets } from './families.js';
import {
  type Call,
  draw,
  type End,
  type Move,
  ownReward,
  type Policy,
  playFrom,
  rewardOf,
  skilled,
  type Ticket,
  Values,
} from './game.js';

/** How skilled the policies are: as before reinforcement, half way, and nearly right. */
export const STAGES = { start: 0, middle: 0.5, late: 0.9 } as const;
export type Stage = keyof typeof STAGES;

/** The episodes of one score: as in a training step, and enough steps for a small error. */
const SAMPLE = { steps: 16, tasksPerStep: 8, groupSize: 8 } as const;

export interface CreditScore {
  /**
   * The cosine between estimated advantages and right credits, from -1 to 1: per policy and step over the turns that
   * train it, then the mean over the policies that have any credit, then over the steps. 1 means: the same up to a
   * positive factor. A shared offset, noise, and credit for turns that changed nothing all lower it.
   */
  readonly cosine: number;
  /** The share of turns with credit whose advantage has the right sign. An advantage of 0 has none. */
  readonly sign: number;
}

/** A step's turns, each with its right credit and the policy that it trains. */
export interface Played {
  readonly records: readonly TurnRecord[];
  readonly credit: readonly number[]; // [turns]
  readonly policies: readonly string[]; // [turns]
}

const teamReward = ({ team }: End) => Object.values(team).reduce((sum, part) => sum + part, 0);

/**
 * The signals that estimators need beside rewards and names, by name. Each is as exact as the simulator can give it.
 */
const signals: Readonly<
  Record<
    string,
    (
      move: Move,
      given: { turn: number; earlier: number; policy: Policy; values: Values; random: RandomStream; greedy: End },
    ) => Partial<TurnRecord>
  >
> = {
  /** A critic without error, of the return from the turn on. */
  values: ({ call }, { values, earlier }) => ({ values: [values.of(call, call.agent) - earlier] }),
  greedy: ({ call }, { greedy }) => ({ baseline: rewardOf(greedy, call.agent) }),
  branches({ call }, { turn, policy, random }) {
    const { end } = playFrom(call, (each) => draw(policy, each, random), random);
    return { baseline: rewardOf(end, call.agent) + ownReward(end, turn) };
  },
};

/** The signals that this part can give. */
export const knownSignals: readonly string[] = Object.keys(signals);

export const policyAt = (family: Family, stage: Stage): Policy =>
  skilled((agent) => Math.max(family.start[agent] ?? START, STAGES[stage]));

/** The last step of the episode; agents that act at once share one, and all of them get its reward. */
const lastRound = (moves: readonly Move[]) => Math.max(...moves.map(({ call }) => call.round));

const likeliest = (policy: Policy) => (call: Call) => {
  const probabilities = policy(call);
  return probabilities.indexOf(Math.max(...probabilities));
};

function playStep(
  family: Family,
  { difficulty, stage, seed, step, need }: Sampled & { readonly step: number; readonly need: string | undefined },
): Played {
  const policy = policyAt(family, stage);
  const list = tickets(difficulty).train as readonly [Ticket, ...Ticket[]];
  const records: TurnRecord[] = [];
  const credit: number[] = [];
  const policies: string[] = [];
  const key = ['creditbench', family.id, stage, seed, step] as const;
  const chosen = new RandomStream(...key);
  for (let task = 0; task < SAMPLE.tasksPerStep; task++) {
    const root = family.begin(chosen.pick(list));
    const values = new Values(policy);
    const unlike = new RandomStream(...key, task, 'greedy');
    const greedy = playFrom(root, likeliest(policy), unlike).end;
    for (let episode = 0; episode < SAMPLE.groupSize; episode++) {
      const random = new RandomStream(...key, task, episode);
      const { moves, end } = playFrom(root, (call) => draw(policy, call, random), random);
      const again = new RandomStream(...key, task, episode, 'signal');
      let earlier = 0;
      for (const [turn, move] of moves.entries()) {
        const { agent, prompt, round } = move.call;
        const own = ownReward(end, turn);
        const isLast = round === lastRound(moves);
        const isAgentsLast = round === lastRound(moves.filter(({ call }) => call.agent === agent));
        records.push({
          task: `${task}`,
          episode: `${task}/${episode}`,
          agent,
          turn,
          reward: rewardOf(end, agent) + own,
          outcome: teamReward(end),
          length: 1,
          observation: prompt,
          chain: turn,
          envStep: round,
          stepReward: isLast ? teamReward(end) + own : own,
          agentStepReward: isAgentsLast ? rewardOf(end, agent) + own : own,
          ...(need === undefined
            ? {}
            : signals[need]?.(move, { turn, earlier, policy, values, random: again, greedy })),
        });
        earlier += own;
        credit.push(values.credit(move));
        policies.push(family.assign[agent] as string);
      }
    }
  }
  return { records, credit, policies };
}

const total = (advantage: number | number[]) =>
  typeof advantage === 'number' ? advantage : advantage.reduce((sum, each) => sum + each, 0);

/** The arguments that decide the episodes of a score. */
export interface Sampled {
  readonly difficulty: number;
  readonly stage: Stage;
  readonly seed: number;
}

/**
 * The episodes of a score, step by step. Equal arguments give equal bits; estimators with the same need see the same.
 * @param need The name of the signal that the estimator needs, one of `knownSignals`
 */
export const playStage = (family: Family, sampled: Sampled, need: string | undefined): Played[] =>
  Array.from({ length: SAMPLE.steps }, (_, step) => playStep(family, { ...sampled, step, need }));

/** The score of an estimator on these steps. */
export function creditScore(steps: readonly Played[], estimator: OpenEstimator): CreditScore {
  let state: EstimatorState = {};
  const cosines: number[] = [];
  let [agreeing, counted] = [0, 0];
  for (const { records, credit, policies } of steps) {
    const estimate = estimateStep(records, estimator, state);
    state = estimate.state;
    const advantages = records.map((_, i) => total(estimate.advantages[i] as number | number[]));
    const ofStep = [...new Set(policies)].flatMap((policy) => {
      const [dot, estimated, right] = moments(advantages, credit, (i) => policies[i] === policy);
      if (right < SMALL) return [];
      return [estimated < SMALL ? 0 : dot / Math.sqrt(estimated * right)];
    });
    if (ofStep.length > 0) cosines.push(mean(ofStep));
    for (const [i, right] of credit.entries()) {
      if (Math.abs(right) < SMALL) continue;
      counted++;
      const advantage = advantages[i] as number;
      if (Math.abs(advantage) > SMALL && Math.sign(advantage) === Math.sign(right)) agreeing++;
    }
  }
  return { cosine: cosines.length === 0 ? 0 : mean(cosines), sign: counted === 0 ? 0 : agreeing / counted };
}

/** Sums below this are rounding. */
const SMALL = 1e-12;

/** The sums of a x b, a x a and b x b over the chosen entries. */
function moments(a: readonly number[], b: readonly number[], isChosen: (index: number) => boolean) {
  const sums: [number, number, number] = [0, 0, 0];
  for (const [i, x] of a.entries()) {
    if (!isChosen(i)) continue;
    const y = b[i] as number;
    sums[0] += x * y;
    sums[1] += x * x;
    sums[2] += y * y;
  }
  return sums;
}
