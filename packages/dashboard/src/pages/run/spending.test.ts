import { expect, it } from 'vitest';
import { emptyLog, extendLog } from '../../../../../src/runs/analysis/run-log.js';
import { evaluation, stamped, step, warmup } from '../../../../../test/fixtures/run-events.js';
import { spendingRows } from './spending.js';

const count = (read: number, written: number, trained = 0) => ({ read, written, trained });

/** A step in which the solver takes ten times its number, and the verifier, which has no price, a fifth of that. */
function spent(number: number) {
  const { agents, ...rest } = step(number);
  const { solver, verifier } = agents;
  if (solver === undefined || verifier === undefined) throw new Error('expected two agents');
  return {
    ...rest,
    episodes: { played: 4, failed: 0 },
    agents: {
      solver: { ...solver, tokens: count(10 * number, number, 11 * number), cost: number },
      verifier: { ...verifier, tokens: count(2 * number, number) },
    },
  };
}

it('adds up the costs of agents in the steps, and the costs of evaluations and the warm start', () => {
  const plain = evaluation(2, 0.5);
  const played = {
    ...plain,
    tasks: 5,
    samples: 2,
    seconds: 3,
    agents: { solver: { ...plain.agents.solver, tokens: count(60, 40) } },
  };
  const events = [warmup(100), warmup(200, 100), spent(1), spent(2), played].map((body) => stamped(body as never));
  expect(spendingRows(extendLog(emptyLog, events))).toEqual([
    { name: 'solver', tokens: count(30, 3, 33), perEpisode: 33 / 8, cost: 3 },
    { name: 'verifier', tokens: count(6, 3), perEpisode: 9 / 8 },
    { name: 'all steps', tokens: count(36, 6, 33), perEpisode: 42 / 8, seconds: 1.6, cost: 3 },
    { name: 'evaluations', tokens: count(60, 40), perEpisode: 10, seconds: 3 },
    { name: 'warm start', tokens: count(0, 0, 500_000), seconds: 10 },
  ]);
});

it('is empty for runs that counted nothing', () => {
  expect(spendingRows(extendLog(emptyLog, [stamped(step(1)), stamped(evaluation(2, 0.5))]))).toEqual([]);
});
