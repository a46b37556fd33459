import { describe, expect, it } from 'vitest';
import { stamped, started, step, warmup } from '../../../../test/fixtures/run-events.js';
import type { RunEvent } from '../events.js';
import { trainingBudget } from './training-budget.js';

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
