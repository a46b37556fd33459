import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { evaluation } from '../../../../test/fixtures/run-events.js';
import { drmas } from '../../../../test/support/command-line.js';
import { quickPlace } from '../../../../test/support/quick-place.js';
import { takesTime } from '../../../../test/support/time-and-chance.js';
import { temporaryRoot, tinyDefinition } from '../../../../test/support/tiny-run.js';
import type { RunPlace } from '../../run/execute/start-run.js';
import { ablateIn } from './ablate.js';
import { comparedVariants, parseBundle, parseVariation, plannedRuns } from './ablation-plan.js';
import { type QueuedJob, runQueue } from './ablation-queue.js';
import { weightVectors } from './weight-vectors.js';

describe('parseVariation', () => {
  it.each([
    ['advantage.type=grpo,drmas', ['grpo', 'drmas']],
    ['tasks.train.operations=[1,2],[3, 4]', ['[1,2]', '[3, 4]']],
    ['advantage={"type":"grpo","epsilon":1},{"type":"drmas"}', ['{"type":"grpo","epsilon":1}', '{"type":"drmas"}']],
    ['name="a,b",c', ['"a,b"', 'c']],
    ['x=a=b,c', ['a=b', 'c']],
  ])('%s', (text, values) => {
    expect(parseVariation(text)).toEqual({ key: text.slice(0, text.indexOf('=')), values });
  });

  it.each(['advantage.type', '=grpo,drmas', 'advantage.type=', 'advantage.type=grpo,'])('refuses %s', (text) => {
    expect(() => parseVariation(text)).toThrow(/expected --vary path\.to\.key=value,value/);
  });
});

describe('parseBundle', () => {
  it.each([
    ['long=warmStart.steps=8,training.steps=2', 'long', ['warmStart.steps=8', 'training.steps=2']],
    ['easy = tasks.train.operations=[1,2]', 'easy', ['tasks.train.operations=[1,2]']],
    ['as it is', 'as it is', []],
  ])('%s', (text, name, overrides) => {
    expect(parseBundle(text)).toEqual({ name, overrides });
  });

  it.each(['', '=training.steps=2', 'long=', 'long=training.steps', 'long=a=1,b'])('refuses %j', (text) => {
    expect(() => parseBundle(text)).toThrow(/expected --variant name=key=value,key=value/);
  });
});

describe('comparedVariants', () => {
  const type = { key: 'advantage.type', values: ['grpo', 'drmas'] };

  it('makes a grid of several variations', () => {
    const variants = comparedVariants({ vary: [type, { key: 'training.groupSize', values: ['4', '8'] }], bundles: [] });
    expect(variants.map(({ name }) => name)).toEqual(['grpo, 4', 'grpo, 8', 'drmas, 4', 'drmas, 8']);
    expect(variants[1]?.overrides).toEqual(['advantage.type=grpo', 'training.groupSize=8']);
  });

  it.each([
    ['nothing to compare', [], /at least two values/],
    ['one value', [{ key: 'advantage.type', values: ['grpo'] }], /at least two values/],
    ['a value twice', [{ key: 'advantage.type', values: ['grpo', 'grpo'] }], /advantage\.type: has a value twice/],
    ['a leaf twice', [type, type], /advantage\.type: varies twice/],
    ['the seed', [{ key: 'seed', values: ['1', '2'] }], /seed: cannot vary: every pair has a seed of its own/],
    ['the warm start', [{ key: 'warmStart.seed', values: ['1', '2'] }], /warmStart\.seed: cannot vary/],
  ])('refuses %s', (_, vary, message) => {
    expect(() => comparedVariants({ vary, bundles: [] })).toThrow(message);
  });

  const [taught, tried] = ['taught=warmStart.steps=8,training.steps=2', 'tried=warmStart.steps=4'].map(parseBundle);
  const bundles = [taught, tried].filter((bundle) => bundle !== undefined);

  it('takes bundles by their names, and each with each value', () => {
    expect(comparedVariants({ vary: [], bundles })).toEqual(bundles);
    const variants = comparedVariants({ vary: [type], bundles });
    expect(variants.map(({ name }) => name)).toEqual(['taught, grpo', 'taught, drmas', 'tried, grpo', 'tried, drmas']);
    expect(variants[1]?.overrides).toEqual(['warmStart.steps=8', 'training.steps=2', 'advantage.type=drmas']);
  });

  it.each([
    ['a name twice', [], [...bundles, { name: 'tried', overrides: [] }], /tried: is the name of two variants/],
    ['one bundle', [], bundles.slice(1), /at least two values/],
    ['a leaf that varies too', [{ key: 'warmStart.steps', values: ['1'] }], bundles, /warmStart\.steps: varies twice/],
    ['a seed', [], [...bundles, parseBundle('lucky=seed=7')], /seed: cannot vary/],
    ['text that is not an override', [], [...bundles, { name: 'odd', overrides: ['steps'] }], /steps/],
  ])('refuses %s in bundles', (_, vary, bundles, message) => {
    expect(() => comparedVariants({ vary, bundles })).toThrow(message);
  });
});

describe('plannedRuns', () => {
  const vary = [{ key: 'advantage.type', values: ['grpo', 'drmas'] }];
  const options = { vary, bundles: [], seeds: 2, firstSeed: 1, set: ['training.steps=3'], hasWarmStart: () => true };

  it('gives the runs of a pair the same seed and the same warm start, pair by pair', () => {
    const runs = plannedRuns(options);
    expect(runs.map(({ name }) => name)).toEqual(['grpo-seed-1', 'drmas-seed-1', 'grpo-seed-2', 'drmas-seed-2']);
    expect(runs[3]).toEqual({
      name: 'drmas-seed-2',
      variant: 'drmas',
      seed: 2,
      overrides: ['training.steps=3', 'advantage.type=drmas', 'seed=2', 'warmStart.seed=2'],
    });
  });

  it('gives all the same warm start on request, and none if the recipe has none', () => {
    const fixed = plannedRuns({ ...options, warmStartSeed: 7 });
    expect(fixed.map(({ overrides }) => overrides.at(-1))).toEqual(Array(4).fill('warmStart.seed=7'));
    const without = plannedRuns({ ...options, hasWarmStart: () => false });
    expect(without.map(({ overrides }) => overrides.at(-1))).toEqual(['seed=1', 'seed=1', 'seed=2', 'seed=2']);
  });

  it('gives each directory its own name', () => {
    const values = ['[1,2]', '[1;2]', '{}', '2e-4'];
    const names = plannedRuns({ ...options, seeds: 1, vary: [{ key: 'x', values }] }).map(({ name }) => name);
    expect(names).toEqual(['1-2-1-seed-1', '1-2-2-seed-1', 'variant-3-seed-1', '2e-4-seed-1']);
  });

  it('gives each variant a directory of its own that a disk can have, whatever variants are called', () => {
    const odd = ['a b', 'a-b', 'a-b-1', 'a-b-2', 'A-B', '..', '.', 'CON', '\u202e', '\n', '😀', 'é', 'x'.repeat(300)];
    const name = fc.oneof(fc.constantFrom(...odd, ...odd.map((each) => `${each}!`)), fc.string({ unit: 'grapheme' }));
    fc.assert(
      fc.property(fc.uniqueArray(name, { minLength: 2, maxLength: 8 }), (names) => {
        const bundles = names.map((each) => ({ name: each, overrides: [] }));
        const planned = plannedRuns({ ...options, seeds: 1, vary: [], bundles }).map(({ name }) => name);
        expect(new Set(planned.map((each) => each.toLowerCase())).size).toBe(names.length);
        for (const each of planned) expect(each).toMatch(/^[\w.+-]{1,120}-seed-1$/);
      }),
    );
  });

  it('refuses settings that would break the pairs', () => {
    expect(() => plannedRuns({ ...options, set: ['seed=3'] })).toThrow(/seed: every pair has a seed of its own/);
    expect(() => plannedRuns({ ...options, set: ['warmStart.seed=3'] })).toThrow(/--warm-start-seed gives all/);
    expect(() => plannedRuns({ ...options, seeds: 0 })).toThrow(/seeds: expected at least 1, got 0/);
  });

  it('lists as many runs as it takes within the time of a test', { tags: 'verify' }, () => {
    const values = Array.from({ length: 250 }, (_, i) => String(i));
    const grid = ['x', 'y'].map((key) => ({ key, values }));
    expect(plannedRuns({ ...options, seeds: 1, vary: grid })).toHaveLength(62_500);
  });

  it('refuses more runs than memory holds before it lists them', () => {
    expect(() => plannedRuns({ ...options, seeds: 1e9 })).toThrow(/expected at most 100000 runs, got \d{10}/);
    const values = Array.from({ length: 9 }, (_, i) => String(i));
    const vary = Array.from({ length: 12 }, (_, i) => ({ key: `training.k${i}`, values }));
    expect(() => comparedVariants({ vary, bundles: [] })).toThrow(/expected at most 100000 runs, got 282429536481/);
    const bundles = Array.from({ length: 1000 }, (_, i) => ({ name: `b${i}`, overrides: [] }));
    expect(() => comparedVariants({ vary: vary.slice(0, 5), bundles })).toThrow(/got 59049000/);
  });
});

const root = temporaryRoot();

describe('vectors of weights', () => {
  it('sum to 1, from all weight on one part to all weight on another', () => {
    expect(weightVectors(['correct', 'calls'], 3)).toEqual({
      'correct 1.00, calls 0.00': ['training.partWeights.correct=1', 'training.partWeights.calls=0'],
      'correct 0.50, calls 0.50': ['training.partWeights.correct=0.5', 'training.partWeights.calls=0.5'],
      'correct 0.00, calls 1.00': ['training.partWeights.correct=0', 'training.partWeights.calls=1'],
    });
    for (const points of [100, 101, 102, 200])
      expect(Object.keys(weightVectors(['correct', 'calls'], points))).toHaveLength(points);
    const three = Object.values(weightVectors(['a', 'b', 'c'], 5));
    expect(three.length).toBe(15);
    for (const overrides of three)
      expect(overrides.reduce((sum, override) => sum + Number(override.split('=')[1]), 0)).toBe(1);
  });

  it.each([
    [['correct'], 5, /at least two named parts/],
    [['correct', 'correct'], 5, /at least two named parts/],
    [['a.b', 'c'], 5, /'a\.b' is no name/],
    [['a', 'b'], 1, /points: expected at least 2/],
    [['a', 'b', 'c', 'd'], 11, /286 vectors/],
  ])('are refused for %j in %d points', (parts, points, message) => {
    expect(() => weightVectors(parts, points)).toThrow(message);
  });
});

describe('an ablation over vectors of weights', () => {
  const parts = ['correct', 'calls'];
  const executeRun: RunPlace['executeRun'] = async ({ training: { partWeights = {} } }, run) => {
    const { correct = 1 } = partWeights;
    run.emit({ ...evaluation(0, 0.5), parts: { correct: 0.5, calls: -1 } });
    run.emit({ ...evaluation(2, 0.5), parts: { correct: Math.sqrt(correct), calls: -1 - correct ** 2 } });
  };

  it('marks the variants that no other one beats, and resumes', async () => {
    const run = join(root, 'front');
    const options = { variants: weightVectors(parts, 3), parts, seeds: 1, run, threads: 1 };
    const { pareto } = await ablateIn({ ...quickPlace, executeRun }, tinyDefinition(), options);
    expect(pareto?.points.map(({ values, front }) => [...values, front])).toEqual([
      [1, -2, true],
      [Math.sqrt(0.5), -1.25, true],
      [0, -1, true],
    ]);
    expect(pareto?.hypervolume).toBeCloseTo(Math.sqrt(0.5) * 0.75, 12);
  });

  it('plots them, and resumes', async () => {
    const run = join(root, 'drawn');
    const { code, out } = await drmas(
      ['ablate', 'math', '--weights', 'correct,calls', '--points', '3', '--seeds', '2', '--run', run],
      { place: { ...quickPlace, executeRun } },
    );
    expect(code).toBe(0);
    expect(out).toMatch(/a +correct 1\.00, calls 0\.00 +1\.00 +-2\.00 +on the front/);
    expect(out).toContain('they cover 0.53 of the box');
    const picture = out.slice(out.indexOf('\ncalls\n'));
    expect(picture.split('\n')[2]).toMatch(/^ +-1\.00 \|c/);
    expect(picture).toMatch(/\n +-2\.00 \| +a\n +0 +1\.00\n/);
    const again = await drmas(['ablate', run], { place: { ...quickPlace, executeRun } });
    expect(again.out).toContain('they cover 0.53 of the box');
  });

  it.each([
    [['--weights', 'correct,calls', '--variant', 'a=seed=1'], /--weights and --variant exclude each other/],
    [['--points', '3', '--vary', 'advantage.type=grpo,drmas'], /--points needs --weights/],
  ])('refuses %j', async (words, message) => {
    const { code, err } = await drmas(['ablate', 'math', ...words]);
    expect(code).toBe(2);
    expect(err).toMatch(message);
  });
});

const tick = () => takesTime(1);

/** Jobs that record their beginning and end. A job opens its lane halfway. */
function jobs(lanes: readonly string[], fails = -1) {
  const log: string[] = [];
  let [running, most] = [0, 0];
  const queued = lanes.map(
    (lane, i): QueuedJob => ({
      lane,
      async run(openLane) {
        most = Math.max(most, ++running);
        log.push(`${lane}${i} begins`);
        await tick();
        openLane();
        await tick();
        if (i === fails) throw new Error(`job ${i} failed`);
        log.push(`${lane}${i} ends`);
        running--;
      },
    }),
  );
  return { queued, log, most: () => most };
}

describe('runQueue', () => {
  it('runs one after another in order', async () => {
    const { queued, log, most } = jobs(['a', 'a', 'b']);
    await runQueue(queued, 1);
    expect(log).toEqual(['a0 begins', 'a0 ends', 'a1 begins', 'a1 ends', 'b2 begins', 'b2 ends']);
    expect(most()).toBe(1);
  });

  it('takes a job of another lane while a lane is closed', async () => {
    const { queued, log, most } = jobs(['a', 'a', 'b', 'b']);
    await runQueue(queued, 2);
    expect(log.slice(0, 2)).toEqual(['a0 begins', 'b2 begins']);
    expect(log).toHaveLength(8);
    expect(most()).toBe(2);
  });

  it('begins the others of a lane as soon as it is open', async () => {
    const { queued, log } = jobs(['a', 'a', 'a']);
    await runQueue(queued, 3);
    expect(log.slice(0, 3)).toEqual(['a0 begins', 'a1 begins', 'a2 begins']);
  });

  it('begins nothing after an error, and waits for the running jobs', async () => {
    const { queued, log } = jobs(['a', 'b', 'c'], 0);
    await expect(runQueue(queued, 2)).rejects.toThrow('job 0 failed');
    expect(log).toEqual(['a0 begins', 'b1 begins', 'b1 ends']);
  });
});
