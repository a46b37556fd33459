import type { TurnRecord } from '@drmas/engine/nouns';
import { expect, it } from 'vitest';
import { estimateAdvantages } from '../../../runs/composition/estimate-advantages.js';
import type { EstimatorState } from '../define-estimator.js';
import { estimateStep } from '../estimate.js';

const turnOf = (agent: string, reward: number, episode: number): TurnRecord => ({
  task: 'a',
  episode: `e${episode}`,
  agent,
  turn: 0,
  reward,
});
const estimator = { type: 'ema', decay: 0.75 } as const;

it("each step is measured against the agent's mean before the step, and then updates the mean", () => {
  const first = [turnOf('solver', 1, 0), turnOf('critic', 8, 0), turnOf('solver', 0, 1)];
  const begun = estimateStep(first, estimator);
  expect([...(begun.advantages as Float64Array)]).toEqual([0.5, 0, -0.5]);
  expect(begun.state).toEqual({ solver: 0.5, critic: 8 });

  const second = [turnOf('solver', 1, 0), turnOf('solver', 2, 1)];
  const next = estimateStep(second, estimator, begun.state);
  expect([...(next.advantages as Float64Array)]).toEqual([0.5, 1.5]);
  expect(next.state).toEqual({ solver: 0.75 * 0.5 + 0.25 * 1.5, critic: 8 });
  expect(begun.state).toEqual({ solver: 0.5, critic: 8 });
});

it('an agent that comes later begins with the mean of its first step', () => {
  const { advantages, state } = estimateStep([turnOf('critic', 2, 0), turnOf('critic', 4, 1)], estimator, {
    solver: 1,
  });
  expect([...(advantages as Float64Array)]).toEqual([-1, 1]);
  expect(state).toEqual({ solver: 1, critic: 3 });
});

it('a single step counts as the first: its baseline is its mean', () => {
  const rewards = [1, 5, 3].map((reward, e) => turnOf('solver', reward, e));
  expect(estimateAdvantages(rewards, { type: 'ema' })).toEqual([-2, 2, 0]);
});

it("is prime-rl's role-conditioned advantage estimation if its means begin at 0 and a step has one episode", () => {
  // Rewards of both players of a game, one game a step.
  const games = [1, -1, -1, 1, 0.5, -0.25].map((reward) => ({ alice: reward, bob: 1 - reward }));
  let state: EstimatorState = { alice: 0, bob: 0 };
  const baselines = { alice: 0, bob: 0 };
  games.forEach((game, episode) => {
    const turns = (['alice', 'bob'] as const).map((agent) => turnOf(agent, game[agent], episode));
    const step = estimateStep(turns, estimator, state);
    const expected = (['alice', 'bob'] as const).map((agent) => {
      const advantage = game[agent] - baselines[agent];
      baselines[agent] = estimator.decay * baselines[agent] + (1 - estimator.decay) * game[agent];
      return advantage;
    });
    expect([...(step.advantages as Float64Array)]).toEqual(expected);
    expect(step.state).toEqual(baselines);
    state = step.state;
  });
});
