import { describe, expect, it } from 'vitest';
import { step as stepEvent } from '../../../../test/fixtures/run-events.js';
import type { AgentStep } from '../../../base/core/events.js';
import { Symptoms } from './symptoms.js';

type Agent = Omit<Partial<AgentStep>, 'health'> & { readonly health?: Partial<AgentStep['health']> };

/** The codes of the warnings in a run of such steps, with the step at which each begins. */
function raised(steps: readonly Agent[], symptoms = new Symptoms()): string[] {
  const usual = stepEvent(1).agents.solver as AgentStep;
  return steps.flatMap((changes, i) => {
    const solver = { ...usual, ...changes, health: { ...usual.health, ...changes.health } };
    return symptoms.judge({ step: i + 1, agents: { solver } }).map(({ code, step }) => `${code} ${step}`);
  });
}
const times = (count: number, agent: Agent) => Array.from({ length: count }, () => agent);
const healthy: Agent = { rewardMean: 0.2, rewardStd: 0.4, entropy: 1, responseTokens: 40 };
const better = { rewardMean: 0.6 };

describe('a symptom', () => {
  it.each<[string, Agent]>([
    ['entropy-collapse', { entropy: 0.05 }],
    ['length-collapse', { responseTokens: 10 }],
    ['echo-trap', { health: { groupSpread: 0.1, duplicates: 0.7 } }],
    ['rewarded-invalid', { invalid: 0.2, health: { rewardedInvalid: 0.5 } }],
  ])('%s shows once the latest five steps differ from the first five, and is reported once', (code, ill) => {
    expect(raised(times(60, healthy))).toEqual([]);
    expect(raised([...times(5, healthy), ...times(20, { ...healthy, ...ill })])).toEqual([`${code} 10`]);
  });

  it('does not occur in an agent that does not train', () => {
    const quiet: Agent = { ...healthy, responseTokens: 1, frozen: true };
    expect(raised([...times(5, { ...healthy, frozen: true }), ...times(20, quiet)])).toEqual([]);
  });

  it('is reported again if it occurs again', () => {
    const ill = { ...healthy, entropy: 0.05 };
    const steps = [...times(5, healthy), ...times(5, ill), ...times(5, healthy), ...times(5, ill)];
    expect(raised(steps)).toEqual(['entropy-collapse 10', 'entropy-collapse 20']);
  });

  it.each<[string, Agent]>([
    ['entropy', { entropy: 0.01 }],
    ['length', { responseTokens: 3 }],
    ['agreement', { health: { groupSpread: 0, duplicates: 1 } }],
  ])('does not occur if %s fell but the reward rose', (_, changed) => {
    expect(raised([...times(5, healthy), ...times(20, { ...healthy, ...changed, ...better })])).toEqual([]);
  });

  it('of rewarded garbage occurs with any reward', () => {
    const hacked = { ...healthy, ...better, invalid: 0.2, health: { rewardedInvalid: 0.5 } };
    expect(raised([...times(5, healthy), ...times(5, hacked)])).toEqual(['rewarded-invalid 10']);
  });

  it('is found at the same step by a watch that was saved and read in between', () => {
    const steps = [...times(5, healthy), ...times(20, { ...healthy, entropy: 0.05 })];
    for (let cut = 0; cut < 12; cut++) {
      const before = new Symptoms();
      const first = raised(steps.slice(0, cut), before);
      const after = new Symptoms(JSON.parse(JSON.stringify(before.state)));
      expect([...first, ...raised(steps.slice(cut), after)]).toHaveLength(1);
    }
  });
});
