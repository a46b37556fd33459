import { describe, expect, it } from 'vitest';
import { comparedVariants, parseBundle, parseVariation, plannedRuns } from './ablation-plan.js';

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

  it('refuses settings that would break the pairs', () => {
    expect(() => plannedRuns({ ...options, set: ['seed=3'] })).toThrow(/seed: every pair has a seed of its own/);
    expect(() => plannedRuns({ ...options, set: ['warmStart.seed=3'] })).toThrow(/--warm-start-seed gives all/);
    expect(() => plannedRuns({ ...options, seeds: 0 })).toThrow(/seeds: expected at least 1, got 0/);
  });
});
