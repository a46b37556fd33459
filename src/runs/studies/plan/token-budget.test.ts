import type { Episode, Turn } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { tinyRecipe } from '../../../../test/support/tiny-run.js';
import { agentUse, evaluationEpisodes, tokenBudget } from './token-budget.js';

const use = {
  solver: { calls: 1.5, promptTokens: 10, responseTokens: 4 },
  verifier: { calls: 1, promptTokens: 20, responseTokens: 2 },
};

describe('evaluationEpisodes', () => {
  it.each([
    [4, 2, 3 * 2 * 3], // at 0, 2 and 4
    [5, 2, 3 * 2 * 4],
    [1, 20, 3 * 2 * 2],
    [0, 2, 3 * 2],
  ])('%i steps, every %i: %i', (steps, every, episodes) => {
    const recipe = tinyRecipe({}, [`training.steps=${steps}`, `evaluation.every=${every}`]);
    expect(evaluationEpisodes(recipe, 3)).toBe(episodes);
  });

  it('counts fewer samples in between', () => {
    const recipe = tinyRecipe({}, ['training.steps=4', 'evaluation.every=2', 'evaluation.samplesDuring=1']);
    expect(evaluationEpisodes(recipe, 3)).toBe(3 * (2 + 1 + 2));
  });
});

describe('tokenBudget', () => {
  it('adds up the tokens that the agents of a policy read, write and learn from', () => {
    const { episodes, policies, run } = tokenBudget(tinyRecipe({}, ['policies.solver.epochs=2']), 3, use);
    expect(episodes).toEqual({ step: 8, training: 32, evaluation: 18 });
    expect(policies.solver).toEqual({
      samples: 12,
      step: { read: 8 * 15, generated: 8 * 6, trained: 8 * 21 * 2 },
      run: { read: 50 * 15, generated: 50 * 6, trained: 32 * 21 * 2 },
    });
    expect(run.generated).toBe(50 * (6 + 2));
  });

  it('counts evaluations separately if they have sampling settings of their own', () => {
    const evaluated = { ...use, solver: { ...use.solver, responseTokens: 40 } };
    const { policies } = tokenBudget(tinyRecipe(), 3, use, evaluated);
    expect(policies.solver?.step).toEqual(tokenBudget(tinyRecipe(), 3, use).policies.solver?.step);
    expect(policies.solver?.run).toEqual({ read: 50 * 15, generated: 32 * 6 + 18 * 60, trained: 32 * 21 });
  });

  it('has the tokens of each agent, for an episode and a run, and their cost if there is a price', () => {
    const price = { read: 1, write: 2, train: 3 };
    const budget = tokenBudget(tinyRecipe({ policies: { solver: { price, epochs: 2 } } }), 3, use);
    const { agents, run } = budget;
    expect(agents.solver?.episode).toEqual({ read: 15, written: 6, trained: 42 });
    expect(agents.solver?.run).toEqual({ read: 50 * 15, written: 50 * 6, trained: 32 * 42 });
    const together = (of: 'read' | 'written' | 'trained') =>
      Object.values(agents).reduce((sum, agent) => sum + agent.run[of], 0);
    expect([together('read'), together('written'), together('trained')]).toEqual([
      run.read,
      run.generated,
      run.trained,
    ]);
    expect(budget.cost).toBeCloseTo((750 + 2 * 300 + 3 * 32 * 42) / 1e6, 12);
    expect([agents.verifier?.cost, tokenBudget(tinyRecipe(), 3, use).cost]).toEqual([undefined, undefined]);
  });

  it('counts calls that continue each other as one sequence in updates, as steps do', () => {
    const turn = (id: string, prompt: number[], response: number[], more: object = {}) =>
      ({
        id,
        agent: 'solver',
        policy: 'solver',
        policyVersion: 0,
        temperature: 1,
        prompt,
        response,
        ...more,
      }) as unknown as Turn;
    const looped = { turns: [turn('a', [1, 2], [3]), turn('b', [1, 2, 3, 4, 5], [6, 7]), turn('c', [9], [8])] };
    const alone = { turns: [turn('a', [1], [2])] };
    const counted = agentUse(tinyRecipe(), [looped, alone] as unknown as Episode[]);
    expect(counted.solver).toMatchObject({ calls: 2, promptTokens: 9 / 4, responseTokens: 5 / 4 });
    expect(counted.solver?.chains).toEqual({ sequences: 3 / 2, tokens: (7 + 2 + 2) / 2 });
    const { agents, policies } = tokenBudget(tinyRecipe({}, ['policies.solver.epochs=2']), 3, counted);
    expect(policies.solver).toMatchObject({ samples: 8 * 1.5, step: { trained: 8 * 5.5 * 2 } });
    expect(agents.solver?.episode).toEqual({ read: 4.5, written: 2.5, trained: 11 });
    expect(agentUse(tinyRecipe(), [alone] as unknown as Episode[]).solver).not.toHaveProperty('chains');
  });

  it('is the same in sum when the agents share a policy', () => {
    const apart = tokenBudget(tinyRecipe(), 3, use);
    const shared = tokenBudget(tinyRecipe({ assign: 'shared' }), 3, use);
    expect(shared.run).toEqual(apart.run);
    expect(shared.policies.shared?.samples).toBe(20);
  });

  it('plays greedy episodes if the estimator needs a baseline, and learns nothing from them', () => {
    const budget = tokenBudget(tinyRecipe({ advantage: { type: 'remax' } }), 3, use);
    expect(budget.episodes.step).toBe(10);
    expect(budget.policies.solver?.samples).toBe(12);
  });
});
