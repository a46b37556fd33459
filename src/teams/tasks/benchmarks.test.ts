import { RecipeError } from '@drmas/engine/errors';
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
