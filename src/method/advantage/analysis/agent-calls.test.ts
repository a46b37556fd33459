import { expect, it } from 'vitest';
import { TurnBatch } from '../turn-batch.js';
import { agentCalls } from './agent-calls.js';

const turnOf = (task: string, episode: string, agent: string, reward: number, outcome?: number) => ({
  task,
  episode,
  agent,
  turn: 0,
  reward,
  ...(outcome === undefined ? {} : { outcome }),
});

it('counts episodes, not turns, by their outcome if every turn has it', () => {
  const turns = (known: boolean) => [
    turnOf('a', 'e0', 'coder', 1, known ? 1 : undefined),
    turnOf('a', 'e1', 'coder', 0, 0),
    turnOf('a', 'e1', 'fixer', -1, 0),
    turnOf('a', 'e1', 'fixer', -1, 0),
    turnOf('b', 'e0', 'coder', 1, 1),
    turnOf('b', 'e0', 'fixer', 0, 1),
    turnOf('b', 'e1', 'coder', 1, 1),
  ];
  expect(agentCalls(new TurnBatch(turns(true)))).toEqual({
    coder: { share: 1, success: 3 / 4, overall: 3 / 4, alone: 0 },
    fixer: { share: 1 / 2, success: 1 / 2, overall: 3 / 4, alone: 1 / 2 }, // twice in task a, once in task b
  });
  const { fixer } = agentCalls(new TurnBatch(turns(false)));
  expect(fixer?.success).toBeCloseTo((-2 / 3 + 1 / 2) / 2, 12);
  expect(agentCalls(new TurnBatch([]))).toEqual({});
});
