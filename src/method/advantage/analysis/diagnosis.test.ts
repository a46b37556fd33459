import { describe, expect, it } from 'vitest';
import { estimators, openEstimator } from '../estimators/index.js';
import { explainInflation, inflationAdvice, sharesMean } from './diagnosis.js';

const escalation = { share: 0.25, success: 1 / 12, overall: 0.77 };
const always = { share: 1, success: 0.77, overall: 0.77 };

describe('the explanation of an inflation', () => {
  it.each([
    [
      'called when things go badly',
      3.08,
      escalation,
      'fixer is called in 25 % of the episodes, those that go badly (0.0833 on average, 0.77 over all): shared statistics multiply the second moment of its gradient by 3.08.',
    ],
    ['called when things go well', 1.6, { share: 0.2, success: 0.9, overall: 0.3 }, /those that go well/],
    ['damped', 0.6, { share: 0.2, success: 0.1, overall: 0.3 }, /those that go badly .* by 0\.60/],
    ['called independently of success', 1, { share: 0.5, success: 0.77, overall: 0.77 }, /as its own would \(1\.00\)/],
    ['called always, for other rewards', 12.31, always, /not those of the whole team: .* by 12\.3/],
    ['no spread', undefined, always, /no inflation to judge/],
  ])('%s', (_, inflation, calls, expected) => {
    expect(explainInflation('fixer', { inflation, calls })).toMatch(expected);
  });

  it.each([
    ['inflated', 3.08, escalation, 0.17, /by 3\.08\. 17 % of its learning signal comes from its own rewards, /],
    ['drowned by others', 1, always, 0.03, /leave the second moment .* \(1\.00\)\. 3 % of its learning signal comes/],
    ['nearly all its own', 1, always, 0.9, /as its own would \(1\.00\)\.$/],
  ])('%s', (_, inflation, calls, ownShare, expected) => {
    expect(explainInflation('fixer', { inflation, ownShare, calls })).toMatch(expected);
  });
});

describe('the advice about an inflation', () => {
  it('names the agent, the reason and the setting, below half of its own', () => {
    const run = { type: 'grpo', groupSize: 16 };
    expect(inflationAdvice('fixer', { inflation: 2, calls: escalation }, run)).toBeUndefined();
    expect(inflationAdvice('fixer', { inflation: undefined, calls: escalation }, run)).toBeUndefined();
    expect(inflationAdvice('fixer', { inflation: 2, ownShare: 0.5, calls: escalation }, run)).toBeUndefined();
    expect(inflationAdvice('fixer', { inflation: 1, ownShare: 0.49, calls: always }, run)).toBeDefined();
    const advice = inflationAdvice('fixer', { inflation: 3, calls: escalation }, run);
    expect(advice?.says).toMatch(
      /^fixer is called in 25 % of the episodes, those that go badly .* grpo judges it by the rewards of the others/,
    );
    expect(advice?.remedy).toMatch(/^advantage\.type=drmas/);
    expect(advice?.remedy).toMatch(/may help/);
    expect(advice?.remedy).not.toMatch(/groupSize/);
    // The own share decides if it is known; the inflation alone missed most gains.
    expect(inflationAdvice('fixer', { inflation: 3.6, ownShare: 0.5, calls: escalation }, run)).toBeUndefined();
    const drowned = inflationAdvice('fixer', { inflation: 1.2, ownShare: 0.3, calls: escalation }, run);
    expect(drowned?.says).toMatch(/30 % of its learning signal comes from its own rewards/);
    const small = inflationAdvice('fixer', { inflation: 3, calls: escalation }, { ...run, groupSize: 8 });
    expect(small?.remedy).toMatch(/called 2\.00 times in a group of 8: a larger training\.groupSize/);
  });

  it('is for estimators whose agents share a mean', () => {
    const sharing = estimators
      .map(({ type }) => type)
      .filter((type) => {
        const choices = type === 'partition' ? { score: 'turn', mean: 'agent', spread: 'task' } : {};
        return sharesMean(openEstimator({ type, ...choices } as Parameters<typeof openEstimator>[0]));
      });
    expect(new Set(sharing)).toEqual(
      new Set([
        ...['grpo', 'dr-grpo', 'grpo-turn', 'drmas-std', 'rloo', 'reinforce++-baseline'],
        ...['maxrl', 'gdpo', 'gigpo'],
      ]),
    );
    for (const type of ['rloo', 'maxrl', 'gdpo', 'gigpo']) {
      const byAgent = { type, byAgent: true } as Parameters<typeof openEstimator>[0];
      expect(sharesMean(openEstimator(byAgent))).toBe(false);
    }
  });
});
