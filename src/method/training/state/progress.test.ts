import { expect, it } from 'vitest';
import { tinyRecipe, watchedRun } from '../../../../test/support/tiny-run.js';
import { firstProgress, keptProgress, keptSchema, loadProgress } from './progress.js';

const run = watchedRun(tinyRecipe());
const watch = { norms: { solver: [1, 2] }, dropped: { solver: 1 }, symptoms: {}, silent: { solver: 3 } };

it('is stored under the names of all earlier versions, without empty parts', () => {
  const progress = firstProgress(run);
  const empty = { norms: {}, dropped: {}, symptoms: {}, silent: {} };
  expect(keptProgress(progress)).toEqual({ step: 0, evaluated: -1, watch: empty, kl: {} });
  progress.estimator = { mean: 0.5 };
  progress.predictions = { easy: 0.9 };
  const full = { ...progress, warmStart: 'abc' };
  const names = ['step', 'evaluated', 'watch', 'kl', 'estimator', 'predictions', 'warmStart'];
  expect(Object.keys(keptProgress(full))).toEqual(names);
});

it('is restored unchanged', () => {
  const kept = { step: 7, evaluated: 5, watch, kl: { solver: 0.25 }, estimator: { mean: 2 }, predictions: { a: 1 } };
  const parsed = keptSchema.parse(JSON.parse(JSON.stringify(kept)));
  const loaded = loadProgress(run, parsed);
  expect(loaded.kl.of({ name: 'solver' })).toBe(0.25);
  expect(JSON.parse(JSON.stringify(keptProgress(loaded)))).toEqual(kept);
});

it('has the initial value of each part that an older checkpoint lacks', () => {
  const { norms, dropped } = watch;
  const parsed = keptSchema.parse({ step: 1, evaluated: 0, watch: { norms, dropped } });
  const loaded = loadProgress(run, parsed);
  expect([loaded.estimator, loaded.predictions, loaded.warmStart]).toEqual([{}, {}, undefined]);
  expect(() => keptSchema.parse({ step: 1, evaluated: 0 })).toThrow();
});
