import { RandomStream } from '@drmas/engine/math';
import type { TaskSource } from '@drmas/engine/nouns';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { toolbox } from '../../../recipes/repair/world.js';
import { benchmarks } from './benchmarks.js';
import { arithmetic } from './generated/arithmetic.js';
import { mix } from './mix.js';

const listed = (name: string, size: number): TaskSource => ({
  name,
  load: async () => ({ name, size, at: (index) => ({ id: String(index), data: index }) }),
});
const easy = arithmetic({ operations: [1, 2] });
const hard = arithmetic({ operations: [5, 6] });
const sourceOf = (id: string) => id.split('/')[0];

describe('a mixture of sources', () => {
  it('has tasks of each in proportion to its weight, the same ones in any order of asking', async () => {
    const weight = fc.integer({ min: 0, max: 5 });
    const weighted = fc.tuple(weight, weight, weight).filter((weights) => weights.some((one) => one > 0));
    await fc.assert(
      fc.asyncProperty(weighted, fc.integer({ min: 0, max: 2 ** 40 }), async (weights, from) => {
        const { at } = await mix([easy, listed('short', 3), listed('long', 999)], weights).load('train');
        const indices = Array.from({ length: 600 }, (_, i) => from + i);
        const tasks = indices.map(at);
        expect(indices.toReversed().map(at).toReversed()).toEqual(tasks);
        const sum = weights.reduce((total, one) => total + one, 0);
        for (const [i, name] of ['arithmetic', 'short', 'long'].entries()) {
          const share = (weights[i] as number) / sum;
          const count = tasks.filter(({ id }) => sourceOf(id) === name).length;
          if (share === 0) expect(count).toBe(0);
          expect(Math.abs(count - 600 * share)).toBeLessThanOrEqual(6 * Math.sqrt(600 * share * (1 - share)));
        }
      }),
      { numRuns: 20 },
    );
  });

  it("draws all tasks of a file, and names each task's source", async () => {
    const { at, size, parts } = await mix({ few: listed('file', 4), easy }).load('train');
    const tasks = Array.from({ length: 80 }, (_, i) => at(i));
    const few = tasks.filter(({ metadata }) => metadata?.benchmark === 'few').map(({ id }) => id);
    expect(new Set(few)).toEqual(new Set(['few/0', 'few/1', 'few/2', 'few/3']));
    expect([size, parts?.map(({ name, size }) => [name, size])]).toEqual([
      Number.POSITIVE_INFINITY,
      [
        ['few', 4],
        ['easy', Number.POSITIVE_INFINITY],
      ],
    ]);
  });

  it('also mixes the demonstrations of sources that have some', () => {
    const { trace } = mix([listed('silent', 5), easy, toolbox()], [8, 1, 1]);
    const agents = Array.from({ length: 200 }, (_, i) => trace?.(new RandomStream('test', i), 'train').agent);
    const coders = agents.filter((agent) => agent === 'coder' || agent === 'fixer').length;
    expect(coders).toBeGreaterThan(60);
    expect(coders).toBeLessThan(140);
    expect(mix([listed('silent', 5)])).not.toHaveProperty('trace');
    expect(mix([listed('silent', 5), easy], [1, 0])).not.toHaveProperty('trace');
  });

  it('has a key of the demonstrations if a source has one, so that no cached warm start of others counts', () => {
    const taught = (key: string): TaskSource => ({
      ...listed('taught', 5),
      trace() {
        return { agent: 'solver', messages: [], response: this.name };
      },
      traceKey: () => key,
    });
    for (const join of [
      (key: string) => mix({ easy, a: taught(key) }),
      (key: string) => benchmarks({ a: taught(key) }),
    ]) {
      expect(join('one').traceKey?.()).toBe(join('one').traceKey?.());
      expect(join('one').traceKey?.()).not.toBe(join('two').traceKey?.());
    }
    expect(mix({ easy })).not.toHaveProperty('traceKey');
    const { trace } = benchmarks({ a: taught('') });
    expect(trace?.(new RandomStream('test'), 'train').response).toBe('taught');
  });

  it('is set by the names of its sources, which are numbered if they are equal', async () => {
    const both = mix([easy, hard], [1, 3]);
    expect(both.settings).toMatchObject({
      arithmetic: { operations: [1, 2] },
      'arithmetic-2': { operations: [5, 6] },
      weights: [1, 3],
    });
    const changed = both.configure?.({
      ...both.settings,
      weights: [0, 1],
      'arithmetic-2': { ...hard.settings, top: 19 },
    });
    expect(changed?.settings).toMatchObject({ weights: [0, 1], 'arithmetic-2': { top: 19 } });
    expect(sourceOf((await changed?.load('train'))?.at(7).id ?? '')).toBe('arithmetic-2');
  });

  it('has a name of its own for each source, whatever they are called', () => {
    const name = fc.constantFrom('x', 'x-2', 'x-3', 'x-2-2', 'y');
    fc.assert(
      fc.property(fc.array(name, { minLength: 1, maxLength: 8 }), (names) => {
        const { weights: _, ...sources } = mix(names.map((each) => listed(each, 1))).settings as Record<
          string,
          unknown
        >;
        expect(Object.keys(sources)).toHaveLength(names.length);
        for (const each of names) expect(sources).toHaveProperty(each);
      }),
    );
  });

  it.each([
    ['no source', [], undefined, /at least one source/],
    ['a value that is not a source', [{}], undefined, /expected a source of tasks/],
    ['weights of other sources', [easy], [1, 2], /weights: expected 1 numbers/],
    ['weights of nothing', [easy, hard], [0, 0], /weights: expected 2 numbers >= 0, not all 0/],
    ['a negative weight', [easy, hard], [2, -1], /weights: .*got \[2,-1\]/],
    ['no number', [easy, hard], ['1', 1], /weights/],
    ['a name that is taken', { weights: easy }, undefined, /weights: is reserved/],
  ])('refuses %s', (_, sources, weights, message) => {
    expect(() => mix(sources as TaskSource[], weights as number[])).toThrow(message);
  });
});
