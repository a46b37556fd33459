/** Public calls refuse options that they do not have: a misspelt one would silently have no effect. */
import { ArgumentError } from '@drmas/engine/errors';
import { expect, it } from 'vitest';
import {
  ablate,
  bootstrapInterval,
  defineBackend,
  defineEstimator,
  defineLoss,
  defineTracker,
  entropyBonus,
  evaluate,
  filterGroups,
  loadPolicy,
  policyLoss,
  resume,
  train,
  trainedAgents,
  valueLoss,
} from '../src/index.js';

const rows = { logprobs: [[-1]], behaviourLogprobs: [[-1]], advantages: [[1]], mask: [[1]] };
const values = { values: [[1]], oldValues: [[0]], returns: [[2]], mask: [[1]] };
const aggregate = 'token-mean';

const words = { source: 'a test', formula: 'r', use: 'in a test' };
const plugin = { type: 'mine', schema: {}, ...words };
const rule = { score: 'turn', mean: 'agent', spread: 'none' } as const;
const ofToken = { ratio: 'token', gradientOf: 'ratio', aggregate, token: () => () => {} } as const;
const backend = { type: 'mine', capabilities: {} as never, open: async () => ({}) as never };

/** Calls with options that are right, and one more. */
const calls: Readonly<Record<string, (more: object) => unknown>> = {
  ablate: (more) => ablate('no-recipe', { seeds: 6, ...more }),
  bootstrapInterval: (more) => bootstrapInterval([0, 1], { level: 0.9, resamples: 10, seed: 1, ...more }),
  defineBackend: (more) => defineBackend({ ...backend, ...more }),
  'the plan of defineBackend': (more) => defineBackend({ ...backend, plan: more }),
  defineEstimator: (more) => defineEstimator({ ...plugin, compute: () => [], ...more }),
  'the traits of defineEstimator': (more) => defineEstimator({ ...plugin, compute: () => [], traits: more }),
  'the rule of defineEstimator': (more) =>
    defineEstimator({ ...plugin, rule: () => ({ ...rule, ...more }) }).open({ type: 'mine' }),
  defineLoss: (more) => defineLoss({ ...plugin, ...ofToken, ...more }),
  defineTracker: (more) => defineTracker({ name: 'mine', open: async () => ({}), ...more }),
  entropyBonus: (more) => entropyBonus({ logits: [[[0, 1]]], mask: [[1]] }, { aggregate, temperature: 1, ...more }),
  evaluate: (more) => evaluate('no-run', { tasks: 3, ...more }),
  filterGroups: (more) => filterGroups([0, 1], { groupSize: 2, lastTry: false, ...more }),
  loadPolicy: (more) => loadPolicy('no-directory', { threads: 1, ...more }),
  policyLoss: (more) =>
    policyLoss(rows, { type: 'ppo-clip', clip: 0.2, aggregate }, { normalizer: 2, maxTokens: 3, ...more }),
  resume: (more) => resume('no-run', undefined, { threads: 1, ...more }),
  train: (more) => train('no-recipe', { threads: 1, ...more }),
  trainedAgents: (more) => trainedAgents('no-run', { threads: 1, ...more }),
  valueLoss: (more) => valueLoss(values, { clip: 0.5, aggregate, normalizer: 1, ...more }),
};

it.each(Object.entries(calls))('%s', async (_, call) => {
  const outcome = async (more: object) => call(more);
  const refused = await outcome({ normaliser: undefined }).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(ArgumentError);
  expect(String(refused)).toMatch(/unknown (option|field) 'normaliser'/);
  const accepted = await outcome({}).catch((error: unknown) => error);
  expect(String(accepted)).not.toMatch(/unknown (option|field)/);
});

it('a bound of values that is missing is refused', () => {
  expect(() => valueLoss(values, { aggregate } as never)).toThrow('clip must be at least 0, got undefined');
});

it.each([false, true, '1', 0.5, 2, Number.NaN, null, undefined])('a mask with the entry %s is refused', (entry) => {
  const mask = [[entry]] as never;
  const message = `mask[0][0] is ${entry}, expected 0 or 1`;
  expect(() => policyLoss({ ...rows, mask }, { type: 'ppo-clip', clip: 0.2, aggregate })).toThrow(message);
  expect(() => valueLoss({ ...values, mask }, { clip: 0.5, aggregate })).toThrow(message);
  expect(() => entropyBonus({ logits: [[[0, 1]]], mask }, { aggregate })).toThrow(message);
});

it.each([Number.NaN, Number.POSITIVE_INFINITY, '1', null])('a filter refuses the reward %s', (reward) => {
  const refused = `rewards[1] is ${reward}, expected a finite number`;
  expect(() => filterGroups([0, reward as never], { groupSize: 2 })).toThrow(refused);
});
