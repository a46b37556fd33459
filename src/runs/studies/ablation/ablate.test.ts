import { existsSync } from 'node:fs';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { RunEvent } from '@drmas/engine/events';
import { beforeAll, describe, expect, it } from 'vitest';
import { evaluation } from '../../../../test/fixtures/run-events.js';
import { quickPlace } from '../../../../test/support/quick-place.js';
import { takesTime } from '../../../../test/support/time-and-chance.js';
import { eventsOf, temporaryRoot, tinyDefinition } from '../../../../test/support/tiny-run.js';
import { RunDirectory } from '../../../method/store/run-directory.js';
import type { RunPlace } from '../../run/execute/start-run.js';
import { type AblateOptions, type AblationResult, ablate, ablateIn } from './ablate.js';
import type { PlannedRun } from './ablation-plan.js';

const root = temporaryRoot();
let directories = 0;
const directory = () => join(root, `ablation-${directories++}`);

const recipe = tinyDefinition();
const vary = { 'advantage.type': ['grpo', 'drmas'] };
const settings = { vary, seeds: 2, set: ['training.steps=2'], threads: 1 };
const warmups = async (path: string) =>
  (await eventsOf(await RunDirectory.open(path))).filter((event) => event.type === 'warmup');

const quickly = (options: Partial<AblateOptions>) => ablateIn(quickPlace, recipe, { ...settings, ...options });

/** The events of the queue, in order. */
function listeners() {
  const begun: string[] = [];
  return { begun, onBegin: ({ name }: PlannedRun) => void begun.push(name) };
}

/** A result without the seconds of its runs: only in these do equal runs differ. */
const timeless = (result: AblationResult): unknown =>
  JSON.parse(JSON.stringify(result, (key, value) => (key === 'seconds' ? undefined : value)));

describe('ablate', () => {
  const run = directory();
  const { begun, onBegin } = listeners();
  let result: AblationResult;
  beforeAll(async () => {
    result = await ablate(recipe, { ...settings, run, parallel: 1, onBegin });
  });

  it('trains each variant with each seed from the same warm start and compares them pair by pair', async () => {
    const names = ['grpo-seed-1', 'drmas-seed-1', 'grpo-seed-2', 'drmas-seed-2'];
    expect(begun).toEqual(names);
    expect(result.runs.map(({ name, status }) => [name, status])).toEqual(names.map((name) => [name, 'completed']));

    const record = async (name: string) => (await RunDirectory.open(join(run, name))).record.resolved;
    const plain = await record('drmas-seed-2');
    expect(plain).toMatchObject({
      seed: 2,
      warmStart: { seed: 2 },
      advantage: { type: 'drmas' },
      training: { steps: 2 },
    });
    expect({ ...plain, advantage: 0 }).toEqual({ ...(await record('grpo-seed-2')), advantage: 0 });
    expect(await warmups(join(run, 'drmas-seed-1'))).toEqual(await warmups(join(run, 'grpo-seed-1')));
    expect(await warmups(join(run, 'drmas-seed-2'))).not.toEqual(await warmups(join(run, 'grpo-seed-1')));

    const [grpo, drmas] = result.variants;
    expect([grpo?.variant, drmas?.variant, result.baseline]).toEqual(['grpo', 'drmas', 'grpo']);
    expect(grpo?.start).toBe(drmas?.start);
    const scores = (variant: string) =>
      result.runs.filter((run) => run.variant === variant).flatMap(({ score }) => score ?? []);
    const differences = scores('drmas').map((score, i) => score - (scores('grpo')[i] ?? 0));
    expect(result.differences).toMatchObject([{ variant: 'drmas', baseline: 'grpo', pairs: 2 }]);
    expect(result.differences[0]?.mean).toBeCloseTo(((differences[0] ?? 0) + (differences[1] ?? 0)) / 2, 12);
    const written = JSON.parse(await readFile(join(run, 'ablation.json'), 'utf8'));
    expect(written).toMatchObject({
      seeds: 2,
      baseline: 'grpo',
      result: { runs: JSON.parse(JSON.stringify(result.runs)) },
    });
  });

  it('makes the same runs if several run at once', { tags: 'verify' }, async () => {
    const several = directory();
    const second = await ablate(recipe, { ...settings, run: several, threads: 3, parallel: 3 });
    expect(timeless(second)).toEqual(timeless({ ...result, directory: several }));
    for (const { name } of result.runs) {
      const [a, b] = [await RunDirectory.open(join(run, name)), await RunDirectory.open(join(several, name))];
      expect(await eventsOf(b)).toEqual(await eventsOf(a));
    }
  });

  it('lets a pair wait for its warm start, also if the first run compiles and warns before it', async () => {
    const order: string[] = [];
    const executeRun: RunPlace['executeRun'] = async (recipe, log, ...rest) => {
      order.push(`${recipe.advantage.type} begins`);
      log.emit({ type: 'preparing', message: 'Compiling the kernels.' });
      log.emit({ type: 'warning', code: 'tasks', message: 'half of the answers are missing' });
      await takesTime(100);
      order.push(`${recipe.advantage.type} is warm`);
      await quickPlace.executeRun(recipe, log, ...rest);
    };
    await ablateIn({ ...quickPlace, executeRun }, recipe, { ...settings, seeds: 1, run: directory(), parallel: 2 });
    expect(order).toEqual(['grpo begins', 'grpo is warm', 'drmas begins', 'drmas is warm']);
  });

  it('compares bundles by name, resumes them, and reports the cost of each training', {
    tags: 'verify',
  }, async () => {
    const run = directory();
    const variants = ['shown=warmStart.steps=8,training.steps=1', 'tried=warmStart.steps=4'];
    const bundled = { vary: [], variants, seeds: 1, set: ['training.steps=2'], threads: 1, run };
    const { runs, variants: means } = await ablate(recipe, bundled);
    expect(runs.map(({ name }) => name)).toEqual(['shown-seed-1', 'tried-seed-1']);
    const [shown, tried] = means.map(({ budget }) => budget);
    expect(shown?.demonstrated).toBeGreaterThan(1.5 * (tried?.demonstrated ?? 0));
    expect(shown?.written).toBeLessThan(tried?.written ?? 0);
    expect(tried?.operations).toBeGreaterThan(0);
    const named = { shown: ['warmStart.steps=8', 'training.steps=1'], tried: ['warmStart.steps=4'] };
    const { begun, onBegin } = listeners();
    await ablate(recipe, { ...bundled, variants: named, seeds: 2, onBegin });
    expect(begun).toEqual(['shown-seed-2', 'tried-seed-2']);
  });

  it('gives all pairs the same warm start if a seed for it is given', async () => {
    const run = directory();
    const { runs } = await quickly({ run, warmStartSeed: 5 });
    const records = await Promise.all(runs.map(({ name }) => RunDirectory.open(join(run, name))));
    expect(records.map(({ record }) => record.resolved.warmStart)).toMatchObject(Array(4).fill({ seed: 5 }));
  });

  it('compares with the first value, or with the chosen one', { tags: 'verify' }, async () => {
    const { differences } = await quickly({ run: directory(), seeds: 6 });
    expect(differences).toMatchObject([{ variant: 'drmas', pairs: 6, better: 6, verdict: 'higher' }]);
    expect(differences[0]?.mean).toBeCloseTo(0.04, 12);
    const named = await quickly({ run: directory(), seeds: 6, baseline: 'drmas' });
    expect(named.differences).toMatchObject([{ variant: 'grpo', baseline: 'drmas', better: 0, verdict: 'lower' }]);
  });

  it('resumes after an interruption, and keeps the finished runs', { tags: 'verify' }, async () => {
    const run = directory();
    const whole = await quickly({ run: directory() });
    const controller = new AbortController();
    const onEvent = ({ name }: PlannedRun, event: RunEvent) => {
      if (name === 'drmas-seed-1' && event.type === 'step') controller.abort(new Error('Ctrl-C'));
    };
    const interrupted = quickly({ run, parallel: 1, onEvent, signal: controller.signal });
    await expect(interrupted).rejects.toThrow('Ctrl-C');
    expect(existsSync(join(run, 'grpo-seed-2'))).toBe(false);

    const { begun, onBegin } = listeners();
    const result = await quickly({ run, onBegin });
    expect(begun).toEqual(['drmas-seed-1', 'grpo-seed-2', 'drmas-seed-2']);
    expect(result).toEqual({ ...whole, directory: run });
    const steps = (await (await RunDirectory.open(join(run, 'drmas-seed-1'))).events()).filter(
      (event) => event.type === 'step',
    );
    expect(steps.map((event) => event.step)).toEqual([1, 2]);
  });

  it('compares the metrics of the team, over the pairs that have them', async () => {
    const executeRun: RunPlace['executeRun'] = async ({ seed, advantage }, run) => {
      const swift = 0.1 * seed + (advantage.type === 'drmas' ? 0.25 : 0);
      run.emit({ ...evaluation(0, 0.5), metrics: { swift: 0.9 } });
      run.emit({ ...evaluation(2, 0.5), metrics: seed === 3 ? {} : { swift } });
    };
    const run = directory();
    const result = await ablateIn({ ...quickPlace, executeRun }, recipe, { ...settings, seeds: 3, run });
    expect(result.runs[1]).toMatchObject({ variant: 'drmas', seed: 1, metrics: { swift: 0.35 } });
    expect(result.variants.map(({ metrics }) => metrics.swift)).toEqual([
      expect.closeTo(0.15, 12),
      expect.closeTo(0.4, 12),
    ]);
    expect(result.metricDifferences).toMatchObject({ swift: [{ variant: 'drmas', pairs: 2, better: 2 }] });
    expect(result.metricDifferences.swift?.[0]?.mean).toBeCloseTo(0.25, 12);
  });

  it('takes more seeds and values into the same directory', { tags: 'verify' }, async () => {
    const run = directory();
    await quickly({ run, seeds: 1 });
    const { begun, onBegin } = listeners();
    const result = await quickly({ vary: { 'advantage.type': ['grpo', 'drmas', 'grpo-turn'] }, run, onBegin });
    expect(begun).toEqual(['grpo-turn-seed-1', 'grpo-seed-2', 'drmas-seed-2', 'grpo-turn-seed-2']);
    expect(result.runs).toHaveLength(6);
  });

  it('leaves a failed run out of the comparison and continues with the others', async () => {
    const place: RunPlace = {
      ...quickPlace,
      executeRun: async (resolved, ...rest) => {
        if (resolved.advantage.type === 'drmas' && resolved.seed === 1) throw new Error('out of luck');
        return quickPlace.executeRun(resolved, ...rest);
      },
    };
    const result = await ablateIn(place, recipe, { ...settings, run: directory() });
    expect(result.runs[1]).toMatchObject({ name: 'drmas-seed-1', status: 'failed', message: 'out of luck' });
    expect(result.variants).toMatchObject([
      { runs: 2, failed: 0 },
      { runs: 1, failed: 1 },
    ]);
    expect(result.differences).toMatchObject([{ pairs: 1, verdict: 'unknown' }]);
  });
});

describe('ablate refuses before anything is created', () => {
  it.each<[string, Partial<AblateOptions>, RegExp]>([
    ['a wrong value', { vary: ['advantage.type=grpo,drmass'] }, /advantage\.type: .*drmass/],
    ['a wrong leaf', { vary: ['advantag.type=grpo,drmas'] }, /advantag: unknown key/],
    ['an unknown baseline', { baseline: 'gpro' }, /baseline: there is no variant 'gpro'; did you mean 'grpo'/],
    ['a seed of all', { set: ['seed=4'] }, /every pair has a seed of its own/],
  ])('%s', async (_, changes, message) => {
    const run = directory();
    await expect(quickly({ run, ...changes })).rejects.toThrow(message);
    expect(existsSync(run)).toBe(false);
  });

  it('a directory with other content, or of another comparison', { tags: 'verify' }, async () => {
    await expect(quickly({ run: root })).rejects.toThrow(/exists and is no ablation/);
    const run = directory();
    await quickly({ run, seeds: 1 });
    const again = (changes: Partial<AblateOptions>) => quickly({ run, ...changes });
    await expect(again({ set: [] })).rejects.toThrow(/was begun with other --set/);
    await expect(again({ warmStartSeed: 1 })).rejects.toThrow(/was begun with another --warm-start-seed/);
    const other = tinyDefinition({ training: { steps: 2, tasksPerStep: 3 } });
    await expect(ablateIn(quickPlace, other, { ...settings, run })).rejects.toThrow(
      /grpo-seed-1 was made with other settings/,
    );
    await rm(join(run, 'grpo-seed-1'), { recursive: true });
    // The files of a run that was killed during its creation.
    await mkdir(join(run, 'grpo-seed-1', 'episodes'), { recursive: true });
    const { begun, onBegin } = listeners();
    await again({ seeds: 1, onBegin });
    expect(begun).toEqual(['grpo-seed-1']);
  });
});
