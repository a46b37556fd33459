import { describe, expect, it } from 'vitest';
import { evaluation, stamped, step } from '../../../../test/fixtures/run-events.js';
import type { Turn } from '../episode.js';
import type { RunEvent } from '../events.js';
import { runSpending } from './run-spending.js';
import { costOf, playedTokens } from './token-count.js';

const price = { read: 1, write: 10, train: 3 };

describe('costOf', () => {
  it('is the sum over the kinds of tokens, at the price of each', () => {
    expect(costOf({ read: 1e6, written: 1e5, trained: 2e6 }, price)).toBeCloseTo(1 + 1 + 6, 12);
  });
});

describe('playedTokens', () => {
  it("counts an endpoint's tokens as it reported them", () => {
    const turns = [
      { prompt: [1, 2, 3], response: [4] },
      { prompt: [], response: [], endpoint: { promptTokens: 20, responseTokens: 5 } },
      { prompt: [], response: [], endpoint: {} },
    ] as unknown as Turn[];
    expect(playedTokens(turns)).toEqual({ read: 23, written: 6, trained: 0 });
  });
});

describe('runSpending', () => {
  const spent = (read: number, trained: number) => ({ tokens: { read, written: 1, trained }, cost: read / 10 });
  const logged = (): RunEvent[] => {
    const [played, judged] = [step(1, { episodes: { played: 10, failed: 1 } }), evaluation(1, 0.5)];
    const agents = Object.fromEntries(
      Object.entries(played.agents).map(([name, agent]) => [name, { ...agent, ...spent(100, 30) }]),
    );
    const evaluated = Object.fromEntries(
      Object.entries(judged.agents).map(([name, agent]) => [name, { ...agent, ...spent(7, 0) }]),
    );
    return [stamped({ ...played, agents }), stamped({ ...judged, agents: evaluated })];
  };

  it('adds up steps and evaluations by agent', () => {
    const spending = runSpending(logged());
    expect(spending?.agents.solver).toEqual({ tokens: { read: 107, written: 2, trained: 30 }, cost: 10.7 });
    expect(spending).toMatchObject({ tokens: { read: 214, written: 4, trained: 60 }, cost: 21.4 });
    expect(spending).toMatchObject({ episodes: 10 + 256 * 4, seconds: 2.8 });
  });

  it('is undefined for logs without tokens, which earlier versions wrote', () => {
    expect(runSpending([stamped(step(1)), stamped(evaluation(1, 0.5))])).toBeUndefined();
  });
});
