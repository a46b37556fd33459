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
