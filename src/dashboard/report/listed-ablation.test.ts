import { expect, it } from 'vitest';
import type { AblationRecord } from '../../method/store/ablation-record.js';
import { listedAblation } from './listed-ablation.js';

const record: AblationRecord = {
  version: 1,
  recipe: { source: 'math', codeHash: 'abc', overrides: ['advantage.type=rloo'] },
  vary: [
    { key: 'advantage.type', values: ['grpo', 'drmas'] },
    { key: 'training.groupSize', values: ['4', '8'] },
  ],
  seeds: 1,
  baseline: 'grpo, 4',
};

const run = (name: string, overrides: readonly string[], seed: unknown = 1) => ({
  name,
  record: {
    version: 1 as const,
    recipe: { source: 'math', overrides, codeHash: 'abc' },
    resolved: { seed },
    acceptedChanges: [],
  },
});

it('knows the variants of a grid, and which run is of which by what it overrides after all others', () => {
  const { variants, baseline, runs } = listedAblation('sweep', record, [
    run('a', ['advantage.type=rloo', 'advantage.type=drmas', 'training.groupSize=8', 'seed=3'], 3),
    run('b', ['advantage.type=rloo', 'advantage.type=grpo', 'training.groupSize=4']),
    run('stranger', ['advantage.type=grpo']),
    run('nameless', ['advantage.type=rloo', 'advantage.type=grpo', 'training.groupSize=4'], 'none'),
  ]);
  expect(variants).toEqual(['grpo, 4', 'grpo, 8', 'drmas, 4', 'drmas, 8']);
  expect(baseline).toBe('grpo, 4');
  expect(runs).toEqual([
    { name: 'a', variant: 'drmas, 8', seed: 3 },
    { name: 'b', variant: 'grpo, 4', seed: 1 },
  ]);
});

it('tells bundles apart, also where one is the beginning of another', () => {
  const bundles = [
    { name: 'as it is', overrides: [] },
    { name: 'short', overrides: ['training.steps=2'] },
    { name: 'short and steep', overrides: ['training.steps=2', 'warmStart.steps=8'] },
  ];
  const { variants, runs } = listedAblation(
    'sweep',
    { ...record, vary: [], bundles },
    bundles.map(({ overrides }, i) =>
      run(`run ${i}`, ['advantage.type=rloo', ...overrides, 'seed=1', 'warmStart.seed=1']),
    ),
  );
  expect(variants).toEqual(bundles.map(({ name }) => name));
  expect(runs.map(({ variant }) => variant)).toEqual(variants);
});
