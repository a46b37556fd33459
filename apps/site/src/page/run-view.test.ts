import type { Step } from '@drmas/engine/events';
import { expect, it } from 'vitest';
import { chosenIn, doseOf, hashOf, nameProblem, usualNames, withDose } from './address.js';
import { compared, isFound, newRun, type RunView, runAfter, trailingMeans } from './run-view.js';

const runOf = (successes: readonly number[]): RunView =>
  successes.reduce<RunView>((run, success, i) => {
    const event = { type: 'step', step: i + 1, success, time: '', version: 1 } as Step & { time: string; version: 1 };
    return runAfter(run, { type: 'event', event });
  }, newRun);
const level = (success: number, steps: number) => runOf(new Array(steps).fill(success));

it('smooths over ten steps, and over those that there are before', () => {
  const means = trailingMeans([1, 0, ...new Array(9).fill(0), 1]);
  expect(means.slice(0, 2)).toEqual([1, 0.5]);
  expect(means[9]).toBeCloseTo(0.1);
  expect(means[10]).toBe(0);
  expect(means[11]).toBeCloseTo(0.1);
});

it('compares the last ten steps that both runs have', () => {
  expect(compared(level(0.9, 9), level(0.5, 30))).toBeUndefined();
  const uneven = compared(runOf([...new Array(10).fill(0.9), 0, 0, 0]), level(0.8, 10));
  expect(uneven).toMatchObject({ step: 10, ahead: 0 });
  expect(uneven?.points).toBeCloseTo(10);
  expect(compared(level(0.7, 12), level(0.8, 12))).toMatchObject({ step: 12, ahead: 1 });
  expect(compared(level(0.8, 12), level(0.82, 12))?.ahead).toBeUndefined();
});

it('shows the state of a run', () => {
  expect(newRun.state).toBe('starting');
  const progress = { phase: 'training', step: 1, episodes: 4, done: 1, failed: 0 } as const;
  expect(runAfter(newRun, { type: 'progress', progress })).toMatchObject({ state: 'training', progress });
  expect(runAfter(newRun, { type: 'failed', message: 'why' })).toMatchObject({ state: 'failed', problem: 'why' });
  expect(runAfter(level(1, 2), { type: 'done' })).toMatchObject({ state: 'done', steps: { length: 2 } });
});

it('finds its runs in any address', () => {
  const chosen = { seed: 7, set: ['training.groupSize=8', 'loss.clip=0.1'] };
  expect(chosenIn(hashOf(chosen))).toEqual(chosen);
  for (const hash of ['', '#', '#seed=-1', '#seed=1.5', '#seed=x', '#other']) expect(chosenIn(hash).seed).toBe(1);
});

it('keeps the dose and the names of a rule in the address', () => {
  const plain = { seed: 1, set: ['loss.clip=0.1'] };
  const often = withDose(plain, 0.5);
  expect(often.set).toEqual(['loss.clip=0.1', 'tasks.train.drift=0.5', 'tasks.test.drift=0.5']);
  expect([doseOf(plain), doseOf(often), withDose(often, 0.25)]).toEqual([0.25, 0.5, plain]);
  const names = usualNames.map((_, i) => `mine${'abcdefghijkl'[i]}`);
  expect(chosenIn(hashOf({ ...often, names }))).toEqual({ ...often, names });
  expect(chosenIn(`${hashOf(plain)}&names=a,b`)).toEqual(plain);
});

it('refuses names that the models have for something else', () => {
  const withFirst = (name: string) => nameProblem([name, ...usualNames.slice(1)]);
  expect(nameProblem(usualNames)).toBeUndefined();
  expect(withFirst('duplicate')).toBeUndefined();
  for (const wrong of ['', 'a', 'Two', 'two words', 'cp', 'into', 'sort', String(usualNames[3])])
    expect(withFirst(wrong), wrong).toContain(`“${wrong}”`);
  expect(nameProblem(usualNames.slice(1))).toContain('expected 12 names');
});

it('calls a name found once half of its latest tries pass', () => {
  const after = (...passes: boolean[]) =>
    runAfter(newRun, { type: 'tries', tries: passes.map((passed) => ({ former: 'cp', passed })) }).names.cp;
  expect([isFound(undefined), isFound(after(false, false, true)), isFound(after(false, true))]).toEqual([
    false,
    false,
    true,
  ]);
  expect(after(...new Array(20).fill(false), true)).toHaveLength(8);
});
