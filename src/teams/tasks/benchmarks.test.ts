import { RecipeError } from '@drmas/engine/errors';
import { RandomStream } from '@drmas/engine/math';
import type { TaskSource } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { benchmarks } from './benchmarks.js';
import { checkedOptions } from './checked-options.js';

const source = (name: string, size: number, settings?: Readonly<Record<string, unknown>>): TaskSource => ({
  name,
  load: async () => ({
    name,
    size,
    warnings: [`${name} warns`],
    at: (index) => ({ id: String(index), data: { of: name, ...settings }, metadata: { level: index } }),
  }),
  ...(settings && { settings, configure: (changed) => source(name, size, changed) }),
});

describe('several benchmarks as one source', () => {
  it('have their tasks one after another, under their names', async () => {
    const set = await benchmarks({ math: source('a', 2), aime: source('b', 1) }).load('test');
    expect([set.name, set.size, set.warnings]).toEqual(['math + aime', 3, ['a warns', 'b warns']]);
    expect([0, 1, 2].map((i) => set.at(i))).toEqual([
      { id: 'math/0', data: { of: 'a' }, metadata: { level: 0, benchmark: 'math' } },
      { id: 'math/1', data: { of: 'a' }, metadata: { level: 1, benchmark: 'math' } },
      { id: 'aime/0', data: { of: 'b' }, metadata: { level: 0, benchmark: 'aime' } },
    ]);
    expect(set.parts?.map(({ name, size }) => [name, size])).toEqual([
      ['math', 2],
      ['aime', 1],
    ]);
    expect(() => set.at(3)).toThrow('there is no task 3 among 3');
  });

  it('are set one by one', async () => {
    const both = benchmarks({ math: source('a', 1, { file: 'x' }), aime: source('b', 1) });
    expect(both.settings).toEqual({ math: { file: 'x' }, aime: {} });
    const changed = both.configure?.({ math: { file: 'y' }, aime: {} });
    expect((await changed?.load('test'))?.at(0).data).toEqual({ of: 'a', file: 'y' });
    expect(() => both.configure?.({ math: { file: 'x' }, aime: { file: 'z' } })).toThrow('aime: cannot be replaced');
    expect(() => both.configure?.({ math: 'y', aime: {} })).toThrow('math: cannot be replaced');
  });
});

describe('the demonstrations of several benchmarks', () => {
  const taught = (agent: string): TaskSource => ({
    ...source(agent, 1),
    trace: (random) => ({ agent, messages: [], response: String(random.uniform()) }),
    traceKey: () => `key of ${agent}`,
  });
  const drawn = (sources: Readonly<Record<string, TaskSource>>) =>
    Array.from({ length: 400 }, (_, i) => benchmarks(sources).trace?.(new RandomStream('test', i), 'test'));

  it('come from all of them', () => {
    const all = drawn({ silent: source('a', 9), one: taught('solver'), two: taught('fixer'), three: taught('judge') });
    for (const name of ['solver', 'fixer', 'judge'])
      expect(Math.abs(all.filter((trace) => trace?.agent === name).length - 400 / 3)).toBeLessThan(60);
    const { traceKey } = benchmarks({ one: taught('solver'), two: taught('fixer') });
    for (const name of ['solver', 'fixer']) expect(traceKey?.()).toContain(`key of ${name}`);
  });

  it('of a single one are as without the others', () => {
    const alone = Array.from({ length: 400 }, (_, i) => taught('solver').trace?.(new RandomStream('test', i), 'test'));
    expect(drawn({ silent: source('a', 9), one: taught('solver') })).toEqual(alone);
    expect(benchmarks({ silent: source('a', 9) })).not.toHaveProperty('trace');
  });
});

describe('the options of a source', () => {
  const schema = z.strictObject({ seed: z.int().default(7), share: z.number().max(1) });

  it('returns the options with their defaults', () => {
    expect(checkedOptions('riddles', schema, { share: 0.5 })).toEqual({ seed: 7, share: 0.5 });
  });

  it('names the source and each option that is wrong', () => {
    const refused = () => checkedOptions('riddles', schema, { share: 2, sede: 1 });
    expect(refused).toThrow(RecipeError);
    expect(refused).toThrow(/^riddles: .*share/);
    expect(refused).toThrow(/sede/);
  });
});
