import type { TurnRecord } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { estimateAdvantages } from '../../runs/composition/estimate-advantages.js';
import { estimateStep } from './estimate.js';
import type { Estimator } from './estimators/index.js';

const numbers = (records: readonly TurnRecord[], estimator: Estimator) =>
  estimateAdvantages(records, estimator).map(Number);

const lone: TurnRecord = { task: 'a', episode: 'e0', agent: 'solver', turn: 0, reward: 2 };

describe('named choices', () => {
  it('a spread below minimumSpread means advantage 0; 0 is the original to the letter', () => {
    const records = [0, 1e-8, 0].map((value, e) => ({ ...lone, episode: `e${e}`, reward: value }));
    expect(numbers(records, { type: 'drmas' })).toEqual([0, 0, 0]);
    expect(numbers(records, { type: 'drmas', epsilon: 1e-12, minimumSpread: 0 })[1]).toBeCloseTo(2 / Math.sqrt(3), 3);
    expect(numbers(records, { type: 'drmas', minimumSpread: 1e-9 })[1]).toBeGreaterThan(0);
    const equal = records.map((turn) => ({ ...turn, reward: 0.25 }));
    expect(numbers(equal, { type: 'grpo', epsilon: 0, minimumSpread: 0 })).toEqual([0, 0, 0]);
  });

  it('a group of one gets nothing, its raw reward, or the statistics of the batch', () => {
    const batch = [0, 1].map((value, e) => ({ ...lone, task: 'b', episode: `e${e}`, reward: value }));
    const records = [lone, ...batch];
    expect(numbers(records, { type: 'drmas', singleton: 'zero' })[0]).toBe(0);
    expect(numbers(records, { type: 'drmas', epsilon: 0, singleton: 'raw' })[0]).toBe(2);
    // Rewards 2, 0, 1: mean 1, spread 1.
    expect(numbers(records, { type: 'drmas', epsilon: 0 })[0]).toBe(1);
    expect(numbers([lone], { type: 'drmas' })).toEqual([0]);
    // The mean's group has one member, the spread's has two episodes.
    const mixed = [lone, { ...lone, episode: 'e1', agent: 'critic', reward: 0 }];
    expect(numbers(mixed, { type: 'drmas-mean', epsilon: 0, singleton: 'raw' })[0]).toBeCloseTo(2 / Math.SQRT2, 12);
    expect(numbers(mixed, { type: 'drmas-std', epsilon: 0, singleton: 'raw' })[0]).toBe(1);
  });

  it('scores an episode of many turns by the chosen rule', () => {
    const records = [
      { ...lone, reward: 0.5, outcome: 1 },
      { ...lone, turn: 1, reward: 1, outcome: 1 },
      { ...lone, turn: 2, reward: 0.75, outcome: 1 },
      { ...lone, episode: 'e1', reward: 0, outcome: 0 },
    ];
    const score = (episodeScore: 'mean' | 'outcome+penalties' | 'outcome' | 'first') =>
      2 * (numbers(records, { type: 'dr-grpo', episodeScore })[0] ?? Number.NaN);
    expect(score('mean')).toBeCloseTo(0.75, 12);
    expect(score('outcome+penalties')).toBeCloseTo(0.25, 12);
    expect(score('outcome')).toBeCloseTo(1, 12);
    expect(score('first')).toBeCloseTo(0.5, 12);
  });

  it('takes the own rewards of agents out of the penalties, and keeps the order of the outcomes', () => {
    // The checker earns the opposite of the team. One turn of the right episode pays a penalty.
    const records = [1, 0].flatMap((outcome, e) => [
      { ...lone, episode: `e${e}`, reward: outcome - (e === 0 ? 0.25 : 0), outcome },
      { ...lone, episode: `e${e}`, agent: 'checker', turn: 1, reward: 1 - outcome, outcome, agentOutcome: 1 - outcome },
    ]);
    const penalised = { type: 'dr-grpo', episodeScore: 'outcome+penalties' } as const;
    expect(numbers(records, penalised)).toEqual([0.375, 0.375, -0.375, -0.375]);
  });

  it('grpo-passk gives 0 to the last episode of a task that is left, and goes on with other tasks', () => {
    const records = [
      { ...lone, reward: 1 },
      ...[1, 0.25].map((reward, e) => ({ ...lone, task: 'b', episode: `e${e}`, reward })),
    ];
    expect(numbers(records, { type: 'grpo-passk', spread: 'none' })).toEqual([0, 0.75, 0]);
  });

  it('an episode is named within its task', () => {
    const records = ['a', 'b'].flatMap((task, t) =>
      [0, 1].map((value) => ({ ...lone, task, episode: `e${value}`, reward: value + 10 * t })),
    );
    expect(numbers(records, { type: 'dr-grpo' })).toEqual([-0.5, 0.5, -0.5, 0.5]);
  });

  it('gae can be whitened over each agent alone', () => {
    const records = Array.from({ length: 8 }, (_, i) => ({
      ...lone,
      agent: i % 2 === 0 ? 'solver' : 'critic',
      reward: (i % 2 === 0 ? 1 : 50) * i,
      length: 2,
      values: [0, 0],
    }));
    const advantages = estimateAdvantages(records, { type: 'gae', whiten: 'agent' });
    for (const agent of ['solver', 'critic']) {
      const ofAgent = advantages.filter((_, i) => records[i]?.agent === agent).flat();
      expect(ofAgent.reduce((a, b) => a + b, 0)).toBeCloseTo(0, 9);
      expect(ofAgent.reduce((a, b) => a + b * b, 0) / (ofAgent.length - 1)).toBeCloseTo(1, 6);
    }
  });
});

describe('gae over whitened TD residuals', () => {
  const records = Array.from({ length: 6 }, (_, i) => ({
    ...lone,
    agent: i % 2 === 0 ? 'solver' : 'critic',
    reward: (i % 2 === 0 ? 1 : 50) * i,
    length: 2,
    values: [0.5, -i],
  }));
  const advantages = (lambda: number, whiten: 'agent' | 'agent-residuals') =>
    estimateAdvantages(records, { type: 'gae', gamma: 0.9, lambda, whiten }) as number[][];

  it('is the residual itself with lambda 0', () => {
    expect(advantages(0, 'agent-residuals')).toEqual(advantages(0, 'agent'));
  });

  it('adds up the later residuals, each agent in its own unit', () => {
    const residuals = advantages(0, 'agent-residuals');
    advantages(0.5, 'agent-residuals').forEach((row, i) => {
      const [first = 0, second = 0] = residuals[i] as number[];
      expect(row[0]).toBeCloseTo(first + 0.45 * second, 12);
      expect(row[1]).toBe(second);
    });
  });

  it('does not change the targets of a critic', () => {
    const returns = (whiten: 'batch' | 'agent-residuals') => estimateStep(records, { type: 'gae', whiten }).returns;
    expect(returns('agent-residuals')).toEqual(returns('batch'));
    expect(returns('batch')?.[2]).toEqual([2, 2]); // with gamma and lambda 1: the reward
  });
});

describe('rewards of tokens', () => {
  const turns: TurnRecord[] = [0, 1, 2, 3, 4, 5, 6, 7].map((i) => ({
    task: `t${i >> 2}`,
    episode: `${i >> 1}`,
    agent: i % 2 === 0 ? 'solver' : 'verifier',
    turn: i % 2,
    reward: (i * 7) % 5,
    outcome: 1,
    length: 2,
    tokenRewards: [0.25 * i, -0.5 * (i % 3)],
  }));
  /** The same turns, with their rewards at once instead of by token. */
  const paid = turns.map(({ tokenRewards = [], ...turn }) => ({
    ...turn,
    reward: tokenRewards.reduce((sum, each) => sum + each, turn.reward),
  }));
  const unpaid = turns.map(({ tokenRewards: _, ...turn }) => turn);

  it.each<Estimator>([
    { type: 'drmas' },
    { type: 'drmas', spread: 'none' },
    { type: 'grpo' },
    { type: 'grpo', episodeScore: 'outcome+penalties' },
    { type: 'rloo', byAgent: true },
    { type: 'reinforce++-baseline' },
    { type: 'grpo-passk' },
  ])('are part of the turn reward if turns are compared: %j', (estimator) => {
    expect(estimateAdvantages(turns, estimator)).toEqual(estimateAdvantages(paid, estimator));
    expect(estimateAdvantages(turns, estimator)).not.toEqual(estimateAdvantages(unpaid, estimator));
  });

  it('are not part of the outcome', () => {
    const estimator = { type: 'grpo', episodeScore: 'outcome' } as const;
    expect(estimateAdvantages(turns, estimator)).toEqual(estimateAdvantages(unpaid, estimator));
  });
});

describe('bad input', () => {
  it('a reward that is not a number is an error that names the turn', () => {
    const where = 'turns[1] (task a, episode e7, agent solver, turn 0)';
    const bad = { ...lone, episode: 'e7', reward: Number.NaN };
    const at = (records: unknown[]) => () => estimateAdvantages(records as TurnRecord[], { type: 'grpo' });
    expect(at([lone, bad])).toThrow(`${where}: reward must be a finite number, got NaN`);
    expect(at([lone, { ...bad, reward: undefined }])).toThrow('got undefined');
    expect(at([lone, { ...bad, reward: Number.POSITIVE_INFINITY }])).toThrow('got Infinity');
  });

  it('an error also names an input that a turn lacks', () => {
    const needs: [Estimator, string][] = [
      [{ type: 'grpo', episodeScore: 'outcome' }, 'outcome'],
      [{ type: 'reinforce++-baseline' }, 'length'],
      [{ type: 'reinforce++' }, 'length'],
      [{ type: 'remax' }, 'baseline'],
      [{ type: 'gigpo' }, 'stepReward'],
    ];
    for (const [estimator, name] of needs) {
      expect(() => estimateAdvantages([lone], estimator), estimator.type).toThrow(name);
      expect(() => estimateAdvantages([lone], estimator), estimator.type).toThrow('turns[0] (task a');
    }
    expect(() => estimateAdvantages([{ ...lone, length: 2, values: [1] }], { type: 'gae' })).toThrow(
      'one value a token',
    );
  });

  it('choices out of range are refused with their names', () => {
    const refused = (estimator: unknown) => () => estimateAdvantages([lone], estimator as Estimator);
    expect(refused({ type: 'grop' })).toThrow('advantage.type must be one of grpo, dr-grpo, drmas');
    expect(refused({ type: 'grpo', epsilon: -1 })).toThrow('advantage.epsilon must be a number >= 0, got -1');
    expect(refused({ type: 'grpo', minimumSpread: Number.NaN })).toThrow('advantage.minimumSpread');
    expect(refused({ type: 'grpo', singleton: 'none' })).toThrow('advantage.singleton must be one of zero, raw, batch');
    expect(refused({ type: 'grpo', episodeScore: 'last' })).toThrow('advantage.episodeScore');
  });
});
