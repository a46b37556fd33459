import type { AgentStep, RunEvent } from '@drmas/engine/events';
import { expect, it } from 'vitest';
import { step } from '../../../test/fixtures/run-events.js';
import { rewardOverTurns, summariseRun, summariseVariants } from './ablation-summary.js';

const solver = step(1).agents.solver as AgentStep;

it('takes the mean reward over the turns that have a reward', () => {
  const failing = { ...solver, turns: 100, rewardedTurns: 10, rewardMean: 1 };
  const { rewardMean: _, ...unmeasured } = { ...solver, turns: 50 };
  const usual = { ...solver, turns: 10, rewardMean: 0 };
  expect(rewardOverTurns([failing, usual, unmeasured])).toBeCloseTo(0.5, 12);
  expect(rewardOverTurns([unmeasured])).toBeNaN();
});

it('takes the largest norm and advantage of 130,000 steps', () => {
  const events = new Array<RunEvent>(130_000).fill(step(1) as unknown as RunEvent);
  const { agents } = summariseRun({ name: '1', variant: 'one', seed: 1 }, events);
  const { gradientNorm, maxAbsAdvantage } = solver;
  expect(agents.solver).toMatchObject({ maxNorm: gradientNorm, maxAbsAdvantage });
});

it('takes the entropy of all turns, not of those that an update learns from', () => {
  const of = (entropy: number, sampledEntropy?: number) =>
    summariseRun({ name: '1', variant: 'one', seed: 1 }, [
      {
        ...step(1),
        agents: { solver: { ...solver, entropy, ...(sampledEntropy === undefined ? {} : { sampledEntropy }) } },
      } as unknown as RunEvent,
    ]).agents.solver?.first.entropy;
  expect([of(0.2, 3), of(0.2)]).toEqual([3, 0.2]);
});

it('takes the mean cost of an agent over all runs, also over those that do not call it', () => {
  const paid = (cost: number) => ({ ...solver, cost, tokens: { read: 1, written: 1, trained: 0 } });
  const runOf = (seed: number, agents: Record<string, AgentStep>) =>
    summariseRun({ name: `${seed}`, variant: 'one', seed }, [{ ...step(1), agents } as unknown as RunEvent]);
  const runs = [runOf(1, { coder: paid(2), fixer: paid(4) }), runOf(2, { coder: paid(2) })];
  const [{ spending = [] } = {}] = summariseVariants(runs, ['one']);
  expect(spending.map(({ agent = 'all', cost }) => [agent, cost])).toEqual([
    ['coder', 2],
    ['fixer', 2],
    ['all', 4],
  ]);
});
