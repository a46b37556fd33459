import { defineLoss } from '@drmas/engine/loss';
import { describe, expect, it } from 'vitest';
import { tinyRecipe } from '../../../../test/support/tiny-run.js';
import { weakSettings } from './weak-settings.js';

describe('settings under which a policy stops learning, or never begins', () => {
  const warnings = (...overrides: string[]) =>
    weakSettings(tinyRecipe({}, ['training.steps=9', ...overrides]))
      .map(({ message }) => message)
      .filter((message) => message.includes('learns nothing'));

  it('a schedule that reaches 0 before the last update', () => {
    const linear = 'policies.solver.schedule.type=linear';
    expect(warnings(linear)).toEqual([]);
    expect(warnings(linear, 'policies.solver.schedule.updates=9')).toEqual([]);
    const short = [linear, 'policies.solver.schedule.updates=8'];
    expect(warnings(...short)).toEqual([
      expect.stringMatching(/^policies\.solver\.schedule .* 8 of at most 9 updates/),
    ]);
    expect(warnings(...short, 'policies.solver.schedule.finalFraction=0.1')).toEqual([]);
  });

  it('a critic that learns alone until the end', () => {
    const alone = (steps: number) => warnings('advantage.type=gae', `policies.solver.critic.aheadSteps=${steps}`);
    expect(alone(8)).toEqual([]);
    expect(alone(9)).toEqual([expect.stringMatching(/critic\.aheadSteps is 9, and the run has 9 steps/)]);
  });
});

describe('a weight of all rewards of a policy', () => {
  const lossOf = (weight: (advantage: number) => number) =>
    defineLoss({
      ...{ type: 'weighed', schema: {}, source: 'a test', formula: 'f(A) log p', use: 'a test' },
      ...{ ratio: 'token', gradientOf: 'logprob', aggregate: 'token-mean' },
      token: () => (sample, out) => {
        out.gradient = -weight(sample.advantage);
      },
    });
  const warned = (weight: (advantage: number) => number) => {
    const recipe = tinyRecipe({}, ['agents.solver.rewardWeight=0.5']);
    const ownLosses = [{ declaration: lossOf(weight), module: import.meta.url }];
    const changed = { loss: { type: 'weighed' }, lists: { ...recipe.lists, ownLosses } };
    return weakSettings({ ...recipe, ...changed } as never).filter(({ message }) => message.includes('rewardWeight'));
  };

  it('changes nothing unless the loss weighs large advantages in another way', () => {
    expect(warned((advantage) => 3 * advantage)).toHaveLength(1);
    expect(warned(Math.tanh)).toEqual([]);
  });
});

it.each([
  ['{"cap":0.5}', ['multiplies the loss of most tokens by 0.5']],
  ['{"cap":0.5,"beyond":"mask"}', ['leaves out the tokens whose probability has not changed']],
  ['{"cap":1,"beyond":"mask"}', []],
  ['{}', []],
])('a cap below the importance that each token has on policy causes a warning: %s', (correction, parts) => {
  const said = weakSettings(tinyRecipe({}, [`loss.importanceCorrection=${correction}`, 'rollout.staleness=1']));
  const messages = new Set(said.map(({ message }) => message).filter((message) => message.includes('.cap is below')));
  expect([...messages]).toEqual(parts.map((part) => expect.stringContaining(part)));
});

it.each([
  ['stopWhen={"patience":3}', '3, and 2 evaluations come between'],
  ['stopWhen={"rewardFloor":{"below":0,"steps":9}}', 'is 9, and the run has 9 steps'],
  ['keepEpisodes=10', 'writes no episodes'],
])('a rule that the run is too short for causes a warning: %s', (rule, message) => {
  const said = (steps: number) =>
    weakSettings(tinyRecipe({}, [`training.steps=${steps}`, 'evaluation.every=3', `training.${rule}`])).map(
      ({ message }) => message,
    );
  expect(said(9)).toEqual([expect.stringContaining(message)]);
  expect(said(10)).toEqual([]);
});
