/**
 * Test vectors: rewards in, advantages out, for every estimator and its settings. Other trainers that implement the
 * same estimators can test against them. docs/test-vectors.md explains the format.
 */

import { ArgumentError } from '@drmas/engine/errors';
import type { TurnRecord } from '@drmas/engine/nouns';
import { sharesMean } from '../../src/method/advantage/analysis/diagnosis.js';
import { estimateStep, type StepEstimate } from '../../src/method/advantage/estimate.js';
import { declarationOf, openEstimator } from '../../src/method/advantage/estimators/index.js';
import type { Estimator } from '../../src/runs/composition/estimate-advantages.js';
import { standard } from '../../src/runs/composition/standard.js';

/** A step's turns, in the order of a vector's advantages. */
export interface VectorBatch {
  readonly name: string;
  readonly note: string;
  readonly turns: readonly TurnRecord[];
}

/** The advantages that an estimator computes for a batch. */
export interface TestVector {
  /** All settings, including the defaults. */
  readonly estimator: Estimator;
  /** The batch of the previous step, for estimators with a state. Absent for a first step. */
  readonly after?: string;
  readonly batch: string;
  /** One entry a turn: a number, or one number a token. */
  readonly advantages: readonly (number | readonly number[])[];
  /** The predicted inflation by agent, if the estimator is a rule and all agents of a task share its mean. */
  readonly predictedInflation?: Readonly<Record<string, number>>;
}

export interface TestVectors {
  readonly format: 'drmas-test-vectors';
  readonly version: 1;
  /** Values agree if |value - expected| <= tolerance x max(1, |expected|). Numbers are written with 12 digits. */
  readonly tolerance: number;
  readonly batches: readonly VectorBatch[];
  readonly vectors: readonly TestVector[];
}

type VectorCall = readonly [agent: string, reward: number, rest?: Partial<TurnRecord>];

/** The turns of a task, one list of calls an episode. */
const task = (name: string, ...episodes: readonly (readonly VectorCall[])[]): TurnRecord[] =>
  episodes.flatMap((calls, e) =>
    calls.map(([agent, reward, rest], turn) => ({ task: name, episode: `e${e}`, agent, turn, reward, ...rest })),
  );
/** Calls of a round that all earn the episode's reward. */
const shared = (reward: number, ...agents: readonly string[]): VectorCall[] =>
  agents.map((agent) => [agent, reward, { outcome: reward }]);
/** The reward of each player in each round. */
const rounds = (...earned: readonly (readonly [alice: number, bob: number])[]): VectorCall[] =>
  earned.flatMap(([alice, bob], envStep) => {
    const round = { outcome: 0, envStep, stepReward: alice + bob };
    return [
      ['alice', alice, { ...round, agentStepReward: alice }],
      ['bob', bob, { ...round, agentStepReward: bob }],
    ] satisfies VectorCall[];
  });

const batches: readonly VectorBatch[] = [
  {
    name: 'synchronous',
    note: 'Every agent acts once in every episode and all share one reward: agent-wise statistics change nothing.',
    turns: [
      ...task('a', shared(1, 'solver', 'verifier'), shared(0, 'solver', 'verifier'), shared(0.5, 'solver', 'verifier')),
      ...task('b', shared(1, 'solver', 'verifier'), shared(1, 'solver', 'verifier'), shared(0, 'solver', 'verifier')),
    ],
  },
  {
    name: 'escalation',
    note: 'A fixer is called only after the coder has failed; in task c no episode differs from another.',
    turns: [
      ...task('a', shared(1, 'coder'), shared(1, 'coder'), shared(1, 'coder', 'fixer'), shared(0, 'coder', 'fixer')),
      ...task('b', shared(1, 'coder'), shared(0, 'coder', 'fixer'), shared(0, 'coder', 'fixer'), shared(1, 'coder')),
      ...task('c', shared(0, 'coder', 'fixer'), shared(0, 'coder', 'fixer')),
    ],
  },
  {
    name: 'uneven',
    note: 'Agents act a different number of times, pay penalties and earn rewards of their own.',
    turns: task(
      'a',
      [
        ['verifier', 1, { outcome: 1 }],
        ['answerer', 1, { outcome: 1 }],
      ],
      [
        ['verifier', 1, { outcome: 1 }],
        ['searcher', 0.9, { outcome: 1 }],
        ['verifier', 1, { outcome: 1 }],
        ['answerer', 1.5, { outcome: 1 }],
      ],
      [
        ['verifier', 0, { outcome: 0 }],
        ['searcher', 0, { outcome: 0 }],
        ['verifier', -0.1, { outcome: 0 }],
        ['searcher', 0, { outcome: 0 }],
        ['verifier', 0, { outcome: 0 }],
        ['answerer', -0.1, { outcome: 0 }],
      ],
      [
        ['verifier', 0, { outcome: 0 }],
        ['answerer', 0, { outcome: 0 }],
      ],
    ),
  },
  {
    name: 'singles',
    note: 'Groups of one: an agent called once in its task, and a task of one episode.',
    turns: [
      ...task('a', shared(1, 'coder'), shared(0, 'coder', 'fixer')),
      ...task('b', shared(1, 'coder', 'fixer'), shared(1, 'coder')),
      ...task('d', shared(0.25, 'coder')),
    ],
  },
  {
    name: 'every field',
    note: 'Tokens, rewards of steps, observations, values of a critic and greedy baselines.',
    turns: task(
      'a',
      [
        ['planner', 1, { outcome: 1, length: 2, stepReward: 0.5, observation: 's', baseline: 1, values: [0.5, 0.25] }],
        ['actor', 1.5, { outcome: 1, length: 1, stepReward: 1, observation: 't', baseline: 0, values: [0.75] }],
      ],
      [
        ['planner', 0, { outcome: 0, length: 1, stepReward: 0, observation: 's', baseline: 1, values: [0.5] }],
        [
          'actor',
          -0.1,
          {
            outcome: 0,
            length: 3,
            stepReward: -0.1,
            observation: 't',
            baseline: 0,
            values: [0.25, 0, -0.25],
            tokenRewards: [-0.01, 0, -0.02],
          },
        ],
        ['actor', 0, { outcome: 0, length: 1, stepReward: 0, observation: 'u', baseline: 0, values: [0.125] }],
      ],
    ),
  },
  {
    name: 'game',
    note: 'Two players with rewards of their own, who act in the same rounds; nobody earns anything together.',
    turns: task('a', rounds([2, 1], [0, 1]), rounds([0, 0], [0, 2]), rounds([0.5, 3], [1, 0])),
  },
];

const byGroup = ['grpo', 'drmas', 'grpo-turn', 'drmas-mean', 'drmas-std', 'drmas-episode', 'drmas-batch'] as const;
const scored = ['outcome+penalties', 'outcome', 'first'] as const;

/** Whether an estimator of this type has a rule for groups of one. */
const hasSingleton = (type: string) => 'singleton' in declarationOf({ type }, standard.estimators).schema.shape;

/** The estimator with the rule for groups of one that was the default when the vectors were published. */
const stated = (estimator: Estimator): Estimator =>
  hasSingleton(estimator.type) ? ({ singleton: 'zero', ...estimator } as Estimator) : estimator;

/** Every estimator, with the settings that change its result. */
const listed: readonly Estimator[] = [
  ...byGroup.flatMap((type): Estimator[] => [{ type }, { type, singleton: 'raw', minimumSpread: 0 }]),
  { type: 'dr-grpo' },
  { type: 'drmas', spread: 'none' },
  ...scored.map((episodeScore) => ({ type: 'grpo', episodeScore }) as const),
  { type: 'drmas', singleton: 'batch' },
  { type: 'drmas', shareStatistics: [['coder', 'fixer']] },
  { type: 'partition', score: 'turn', mean: 'agent', spread: 'task', unit: 'turn' },
  { type: 'partition', score: 'turn', mean: 'agent-episodes', spread: 'none' },
  { type: 'rloo' },
  { type: 'rloo', byAgent: true },
  { type: 'reinforce++-baseline' },
  { type: 'reinforce++-baseline', byAgent: true },
  { type: 'at-grpo' },
  { type: 'magrpo' },
  { type: 'magrpo', gamma: 0.5 },
  { type: 'grpo-passk' },
  { type: 'grpo-passk', spread: 'none' },
  { type: 'gigpo' },
  { type: 'gigpo', byAgent: true, spread: 'group' },
  { type: 'rejection' },
  { type: 'rejection', keep: 'best' },
  { type: 'reinforce++' },
  { type: 'reinforce++', gamma: 0.5 },
  { type: 'remax' },
  { type: 'counterfactual' },
  { type: 'gae' },
  { type: 'gae', gamma: 0.9, lambda: 0.5, whiten: 'agent' },
  { type: 'gae', whiten: 'agent-residuals' },
  { type: 'ema' },
  { type: 'shrinkage' },
  { type: 'gdpo' },
  { type: 'gdpo', byAgent: true },
  { type: 'maxrl' },
  { type: 'hierarchical-grpo' },
  { type: 'advantage-alignment' },
  { type: 'advantage-alignment', spread: 'group', gamma: 0.5, weight: 2 },
];

/** The estimators with a state: a vector of two successive steps. */
const sequences: readonly { readonly estimator: Estimator; readonly after: string; readonly batch: string }[] = [
  { estimator: { type: 'ema', decay: 0.75 }, after: 'escalation', batch: 'singles' },
  { estimator: { type: 'drmas', singleton: 'ema' }, after: 'escalation', batch: 'singles' },
  { estimator: { type: 'grpo', singleton: 'ema' }, after: 'escalation', batch: 'singles' },
];

/** All test vectors. A batch without the input of an estimator has no vector for it. */
export function testVectors(): TestVectors {
  const first = batches.flatMap((batch) =>
    listed.map(stated).flatMap((estimator) => {
      const step = stepWith(batch, estimator);
      return step === undefined ? [] : [vector(estimator, batch, step)];
    }),
  );
  const next = sequences.map(({ estimator, after, batch }): TestVector => {
    const { state } = estimateStep(named(after).turns, opened(estimator));
    return { ...vector(estimator, named(batch), estimateStep(named(batch).turns, opened(estimator), state)), after };
  });
  return { format: 'drmas-test-vectors', version: 1, tolerance: 1e-9, batches, vectors: [...first, ...next] };
}

/** An estimator with its choices, of the method or of the lab. */
export const opened = (estimator: Estimator) => openEstimator(estimator, standard.estimators);

const named = (name: string) => batches.find((batch) => batch.name === name) as VectorBatch;

function stepWith({ turns }: VectorBatch, estimator: Estimator): StepEstimate | undefined {
  try {
    return estimateStep(turns, opened(estimator));
  } catch (error) {
    if (error instanceof ArgumentError) return undefined;
    throw error;
  }
}

const isSharedRule = (estimator: ReturnType<typeof opened>) => estimator.rule !== undefined && sharesMean(estimator);

function vector(estimator: Estimator, batch: VectorBatch, { advantages, inflation }: StepEstimate): TestVector {
  return {
    estimator: declarationOf(estimator, standard.estimators).schema.parse(estimator) as Estimator,
    batch: batch.name,
    advantages: batch.turns.map((_, i) => {
      const advantage = advantages[i] as number | number[];
      return typeof advantage === 'number' ? written(advantage) : advantage.map(written);
    }),
    ...(isSharedRule(opened(estimator))
      ? { predictedInflation: Object.fromEntries(Object.entries(inflation).map(([k, v]) => [k, written(v)])) }
      : {}),
  };
}

/** Rounds to 12 digits and replaces -0 by 0: the last bits depend on the machine. */
const written = (value: number) => Number(value.toPrecision(12)) + 0;

/** The vectors as JSON, with one line for each turn and each vector. */
export function testVectorsText({ batches, vectors, ...head }: TestVectors = testVectors()): string {
  const lines = (rows: readonly unknown[], indent: string) =>
    rows.map((row) => `${indent}${JSON.stringify(row)}`).join(',\n');
  const ofBatches = batches.map(
    ({ name, note, turns }) =>
      `    {\n      "name": ${JSON.stringify(name)},\n      "note": ${JSON.stringify(note)},\n      "turns": [\n${lines(turns, '        ')}\n      ]\n    }`,
  );
  const keys = Object.entries(head).map(([key, value]) => `  ${JSON.stringify(key)}: ${JSON.stringify(value)},\n`);
  return `{\n${keys.join('')}  "batches": [\n${ofBatches.join(',\n')}\n  ],\n  "vectors": [\n${lines(vectors, '    ')}\n  ]\n}\n`;
}
