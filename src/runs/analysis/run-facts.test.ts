import { expect, it } from 'vitest';
import { run, stamped, started, step } from '../../../test/fixtures/run-events.js';
import { RunFactsReader } from './run-facts.js';

const recipe = { name: 'math', team: 'pair', seed: 3, advantage: { type: 'drmas' }, training: { steps: 9 } };

it('collects the state of a run and its scores', () => {
  const reader = new RunFactsReader(recipe);
  expect(reader.facts).toMatchObject({
    recipe: 'math',
    estimator: 'drmas',
    seed: 3,
    plannedSteps: 9,
    state: 'unfinished',
  });
  for (const event of run.slice(0, 3)) reader.add(event);
  expect(reader.facts).toMatchObject({ warmStart: { step: 1600, steps: 2000 }, steps: 0, last: null });
  for (const event of run.slice(3)) reader.add(event);
  expect(reader.facts).toMatchObject({
    state: 'completed',
    warmStart: null,
    steps: 3,
    first: { step: 0, averageAtK: 0.62 },
    last: { step: 3, averageAtK: 0.93 },
    agents: ['solver', 'verifier'],
    spikes: 1,
  });
  expect(reader.facts.rewards).toHaveLength(3);
  reader.reset();
  expect(reader.facts).toEqual(new RunFactsReader(recipe).facts);
});

it('takes a run whose end has no reason for unfinished', () => {
  const reader = new RunFactsReader(recipe);
  for (const event of run)
    reader.add(event.type === 'run.finished' ? ((({ reason: _, ...rest }) => rest)(event) as typeof event) : event);
  expect(reader.facts.state).toBe('unfinished');
});

it.each([{}, { step: {} }, { step: '2' }, { reward: { mean: {} } }, { time: 5 }])(
  'counts no step, reward or time of another type: %j',
  (fields) => {
    const reader = new RunFactsReader(recipe);
    for (const type of ['warmup', 'step']) reader.add({ type, ...fields } as never);
    expect(reader.facts).toEqual(new RunFactsReader(recipe).facts);
  },
);

it('keeps a bounded number of rewards, evenly spread over a long run', () => {
  const reader = new RunFactsReader({});
  reader.add(stamped(started));
  for (let i = 1; i <= 5000; i++) reader.add(stamped(step(i, { reward: { mean: i, std: 0 } })));
  const { rewards, reward } = reader.facts;
  expect(reward).toBe(5000);
  expect(rewards.length).toBeGreaterThan(100);
  expect(rewards.length).toBeLessThanOrEqual(240);
  expect(new Set(rewards.slice(1).map((value, i) => value - (rewards[i] ?? 0))).size).toBe(1);
});
