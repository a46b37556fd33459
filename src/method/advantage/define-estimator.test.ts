import type { TurnRecord } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { defineEstimator } from './define-estimator.js';
import { spreadChoices } from './named-choices.js';
import { TurnBatch } from './turn-batch.js';

const batch = new TurnBatch(
  [1, 0].map((reward, e) => ({ task: 'a', episode: `e${e}`, agent: 'solver', turn: 0, reward })),
);
const texts = { source: 'a test', formula: 'r', use: 'never' };

describe('an estimator by a rule', () => {
  const halved = defineEstimator({
    ...texts,
    type: 'halved',
    schema: { spread: z.enum(['agent', 'none']).default('none'), ...spreadChoices },
    rule: ({ spread }) => ({ score: 'turn', mean: 'agent', spread }),
  });

  it('has defaults for omitted choices, and the laws of its rule', () => {
    const open = halved.open({ type: 'halved' });
    expect([...(open.compute(batch) as Float64Array)]).toEqual([0.5, -0.5]);
    expect(open.settings).toEqual({
      singleton: 'batch',
      epsilon: 1e-6,
      minimumSpread: 1e-6,
      episodeScore: 'mean',
      shareStatistics: [],
    });
    expect(open.laws).toEqual({ shift: ['reward'], takesScaleOut: false });
    expect(halved.open({ type: 'halved', spread: 'agent' }).laws.takesScaleOut).toBe(true);
    expect(open.returns(batch)).toBeUndefined();
  });

  it('ignores the choices of other estimators from a program, and refuses them in a recipe', () => {
    expect(halved.open({ type: 'halved', gamma: 1 }).rule).toEqual({ score: 'turn', mean: 'agent', spread: 'none' });
    const others = { shareStatistics: [['solver', 'critic']], episodeScore: 'first', singleton: 'raw' };
    expect(halved.open({ type: 'halved', ...others }).settings).toMatchObject({
      singleton: 'raw',
      episodeScore: 'mean',
      shareStatistics: [],
    });
    expect(halved.schema.safeParse({ type: 'halved', gamma: 1 }).success).toBe(false);
    expect(() => halved.open({ type: 'halved', spread: 'task' })).toThrow(
      'advantage.spread must be one of agent, none, got "task"',
    );
  });
});

describe('an estimator that keeps something from step to step', () => {
  const counting = defineEstimator({
    ...texts,
    type: 'counting',
    schema: { by: z.number().default(2) },
    laws: () => ({ shift: [] }),
    compute: ({ turns }, _choices, _settings, { steps = 0 }) => turns.map(() => steps),
    advance: (_batch, { by }, { steps = 0 }) => ({ steps: steps + by }),
  });

  it('begins with an empty state, and computes a step from the state of the step before', () => {
    const open = counting.open({ type: 'counting' });
    const first = open.advance(batch, {});
    expect(open.compute(batch)).toEqual([0, 0]);
    expect(first).toEqual({ steps: 2 });
    expect(open.compute(batch, first)).toEqual([2, 2]);
    expect(open.advance(batch, first)).toEqual({ steps: 4 });
    expect(first).toEqual({ steps: 2 });
  });

  it('is distinguished from an estimator without a state', () => {
    const plain = defineEstimator({
      ...texts,
      type: 'plain',
      schema: {},
      laws: () => ({ shift: [] }),
      compute: ({ rewards }) => rewards,
    });
    expect(plain.open({ type: 'plain' }).advance(batch, { steps: 2 })).toEqual({});
  });
});

describe('an estimator of a user is refused by the turn', () => {
  const two = new TurnBatch([1, 0].map((reward, e) => ({ ...batch.turns[e], reward, length: 2 }) as TurnRecord));
  const place = 'turns[1] (task a, episode e1, agent solver, turn 0): the advantages by';
  const giving = (advantages: unknown, more: object = {}) =>
    defineEstimator({ ...texts, type: 'own', schema: {}, compute: () => advantages as number[], ...more }).open({
      type: 'own',
    });

  it.each<[unknown, string]>([
    [[1], "the estimator 'own' gave 1 advantages, expected one for each of 2 turns"],
    [Float64Array.of(1, 2, 3), 'gave 3 advantages, expected one for each of 2 turns'],
    [undefined, 'gave [object Undefined] as advantages'],
    [Promise.resolve([1, 2]), 'gave [object Promise] as advantages'],
    [new Map([[0, 1]]), 'gave [object Map] as advantages'],
    [[1, Number.NaN], `${place} 'own' are NaN, expected a finite number, or a list with one for each of 2 tokens`],
    [[1, Number.POSITIVE_INFINITY], `${place} 'own' are Infinity`],
    [[1, '1'], `${place} 'own' are 1, expected a finite number`],
    [[1, 1n], `${place} 'own' are 1, expected a finite number`],
    [[1, undefined], `${place} 'own' are undefined`],
    [[1, [1]], `${place} 'own' are [1], expected a finite number, or a list with one for each of 2 tokens`],
    [[1, [1, 2, 3]], `${place} 'own' are [1, 2, 3]`],
    [[1, [1, Number.NaN]], `${place} 'own' are [1, NaN]`],
    [[1, new Array(2)], `${place} 'own' are [, ]`],
    [[1, Float64Array.of(1, 2)], `${place} 'own' are 1,2`],
  ])('if it gives %o', (advantages, says) => {
    expect(() => giving(advantages).compute(two)).toThrow(says);
  });

  it('if it gives other returns or another state, and passes with a number, or one for each token', () => {
    const good = [1, [1, 2]];
    expect(giving(good).compute(two)).toBe(good);
    expect(giving(Float64Array.of(1, 2)).compute(two)).toEqual(Float64Array.of(1, 2));
    expect(() => giving(good, { returns: () => [[1, 2]] }).returns(two)).toThrow('gave 1 returns');
    expect(() => giving(good, { returns: () => [[1, 2], [1]] }).returns(two)).toThrow("the returns by 'own' are [1]");
    expect(() => giving(good, { advance: () => ({ seen: Number.NaN }) }).advance(two, {})).toThrow(
      "the estimator 'own' has the state seen: NaN, expected an object with finite numbers",
    );
    expect(() => giving(good, { advance: () => undefined }).advance(two, {})).toThrow('has the state undefined');
  });
});
