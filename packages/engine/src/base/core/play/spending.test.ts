import { describe, expect, it } from 'vitest';
import { evaluation, stamped, started, step, warmup } from '../../../../../../test/fixtures/run-events.js';
import type { Turn } from '../episode.js';
import type { RunEvent } from '../events.js';
import { runSpending, trainingBudget } from './spending.js';
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

  it('counts the episodes that a step plays as baselines, whose tokens it counts too', () => {
    const baseline = { episodes: 4, failed: 0 };
    const more = logged().map((event) => (event.type === 'step' ? { ...event, baseline } : event));
    expect(runSpending(more)?.episodes).toBe(10 + 4 + 256 * 4);
  });

  it('is undefined for logs without tokens, which earlier versions wrote', () => {
    expect(runSpending([stamped(step(1)), stamped(evaluation(1, 0.5))])).toBeUndefined();
  });
});

const spent = { solver: { read: 100, written: 20, trained: 120 }, verifier: { read: 10, written: 2, trained: 0 } };
const steps = [1, 2].map((number) => {
  const { agents, ...plain } = step(number);
  const withTokens = Object.entries(agents).map(([agent, measures]) => [
    agent,
    { ...measures, tokens: spent[agent as keyof typeof spent] },
  ]);
  return { ...plain, agents: Object.fromEntries(withTokens) };
});
const sizes = { solver: 1000, verifier: 10 };
const events = [{ ...started, parameters: sizes }, warmup(50), warmup(100, 50), ...steps].map(stamped) as RunEvent[];
const both = { solver: 'solver', verifier: 'verifier' };

describe('the budget of a training', () => {
  it('has the tokens of the warm start and of the steps', () => {
    expect(trainingBudget(events, both)).toMatchObject({ demonstrated: 250_000, read: 220, written: 44, trained: 240 });
  });

  it('counts 2 operations a parameter to play a token and 6 to train it, each agent with the size of its policy', () => {
    const operations = (policies: Record<string, string>) => trainingBudget(events, policies)?.operations;
    const warm = 6 * 250_000 * 1000;
    expect(operations(both)).toBe(warm + 2 * (1000 * (2 * 120 + 6 * 120) + 10 * 2 * 12));
    expect(operations({ solver: 'solver', verifier: 'solver' })).toBe(warm + 2 * 1000 * (2 * 132 + 6 * 120));
  });

  it('gives no operations if the size of a model is not known', () => {
    expect(trainingBudget(events, { solver: 'solver' })).not.toHaveProperty('operations');
    expect(trainingBudget(events.slice(1), both)).not.toHaveProperty('operations');
    expect(trainingBudget([stamped(step(1))], both)).toBeUndefined();
  });
});
