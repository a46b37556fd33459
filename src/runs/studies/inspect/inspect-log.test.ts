import { describe, expect, it } from 'vitest';
import { comparableEstimators } from '../../../method/advantage/analysis/compared-estimators.js';
import { openEstimator } from '../../../method/advantage/estimators/index.js';
import { predictedInflation } from '../../../method/advantage/inflation.js';
import { TurnBatch } from '../../../method/advantage/turn-batch.js';
import { estimateAdvantages } from '../../composition/estimate-advantages.js';
import type { Log } from './collect-turns.js';
import { comparableEstimator, inspect } from './inspect-log.js';

interface Given {
  task: string;
  episode: string;
  agent: string;
  reward: number;
  penalty?: number;
  outcome?: number;
  step?: number;
}

function log(given: readonly Given[]): Log {
  const turns = given.map(({ penalty = 0, reward, step: _, ...rest }, turn) => ({
    ...rest,
    turn,
    reward: reward - penalty,
  }));
  const steps = Int32Array.from(given, ({ step = 0 }) => step);
  const penalties = Float64Array.from(given, ({ penalty = 0 }) => penalty);
  return {
    layout: 'test',
    files: 1,
    rows: 1,
    notices: [],
    batch: new TurnBatch(turns),
    steps,
    penalties,
    logged: undefined,
  };
}

const both = (task: string, episode: string, reward: number, penalty = 0): Given[] => [
  { task, episode, agent: 'a', reward },
  { task, episode, agent: 'b', reward, penalty },
];

describe('groups', () => {
  it('by outcome, and by the other rewards if outcomes are equal', () => {
    const { groups } = inspect(
      log([
        ...[...both('mixed', '0', 1), ...both('mixed', '1', 0)],
        ...[...both('right', '0', 1), ...both('right', '1', 1)],
        ...[...both('penalty', '0', 0), ...both('penalty', '1', 0, 0.1)],
        ...both('alone', '0', 1),
      ]),
    );
    expect(groups).toEqual({
      count: 4,
      mixed: 1,
      allRight: 2,
      allWrong: 1,
      nothing: 2,
      penaltiesOnly: 1,
      ownRewardsOnly: 0,
      singleEpisode: 1,
      singleTurnOfAgent: 2,
    });
  });

  it('with an outcome of the team, rewards of single agents are separate', () => {
    const turns = ['0', '1'].flatMap((episode) => [
      { task: 't', episode, agent: 'a', reward: 1, outcome: 1 },
      { task: 't', episode, agent: 'b', reward: Number(episode), outcome: 1 },
    ]);
    expect(inspect(log(turns)).groups).toMatchObject({ mixed: 0, allRight: 1, ownRewardsOnly: 1 });
  });

  it('sums that differ only by rounding are equal', () => {
    const turns = [0.1 + 0.2, 0.3].map((reward, i) => ({ task: 't', episode: `${i}`, agent: 'a', reward }));
    expect(inspect(log(turns)).groups).toMatchObject({ nothing: 1 });
  });
});

describe('agents and estimators', () => {
  // b is called three times as often in bad episodes, so its mean is lower.
  const given: Given[] = Array.from({ length: 40 }, (_, e) => {
    const reward = e % 4 === 0 ? 0 : 1;
    const calls = reward === 0 ? 3 : 1;
    const task = `t${e >> 3}`;
    const turn = (agent: string, penalty = 0): Given => ({ task, episode: `${e}`, agent, reward, penalty });
    return [turn('a'), ...Array.from({ length: calls }, (_, c) => turn('b', c === 2 ? 0.1 : 0))];
  }).flat();
  const inspection = inspect(log(given), comparableEstimators);
  const { turns } = log(given).batch;

  it('report the results of the estimators', () => {
    for (const estimator of comparableEstimators) {
      const { type } = estimator;
      const advantages = estimateAdvantages(turns, estimator) as number[];
      for (const agent of ['a', 'b']) {
        const ofAgent = advantages.filter((_, i) => turns[i]?.agent === agent);
        const mean = (of: (a: number) => number) => ofAgent.reduce((sum, a) => sum + of(a), 0) / ofAgent.length;
        const findings = inspection.estimators[type]?.[agent];
        expect(findings?.meanAbs, type).toBeCloseTo(mean(Math.abs), 10);
        expect(findings?.maxAbs, type).toBe(Math.max(...ofAgent.map(Math.abs)));
        expect(findings?.secondMoment, type).toBeCloseTo(
          mean((a) => a * a),
          10,
        );
        expect(findings?.zero, type).toBeCloseTo(
          mean((a) => (a === 0 ? 1 : 0)),
          10,
        );
      }
    }
  });

  it('compute the advantages of each step by itself', () => {
    const turn = (step: number, reward: number): Given => ({ task: `${step}`, episode: '0', agent: 'a', reward, step });
    // Each agent is alone in its group, so only turns of the same step could be compared with it.
    expect(inspect(log([turn(0, 1), turn(1, 0)])).estimators.drmas?.a).toMatchObject({ meanAbs: 0, zero: 1 });
    expect(inspect(log([turn(0, 1), { ...turn(1, 0), step: 0 }])).estimators.drmas?.a?.zero).toBe(0);
  });

  it('predict the same inflation as training', () => {
    expect(inspection.agents.a?.inflation.byEpisodes).toBe(
      predictedInflation(log(given).batch, openEstimator({ type: 'grpo' })).a,
    );
    expect(inspection.agents.b?.inflation.byTurns).toBe(
      predictedInflation(log(given).batch, openEstimator({ type: 'grpo-turn' })).b,
    );
    expect(inspection.agents.b).toMatchObject({ turns: 60, callsPerEpisode: 1.5, penalised: 1 / 6 });
    expect(inspection.agents.b?.calls.share).toBe(1);
    expect(inspection.agents.b?.explanation).toMatch(/^b is called in every episode/);
  });

  it('refuse estimators that need more than rewards', () => {
    expect(() => comparableEstimator('gae')).toThrow(/--estimator must be one of grpo, .*got 'gae'/);
  });
});
