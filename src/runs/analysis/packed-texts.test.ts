import fc from 'fast-check';
import { expect, it } from 'vitest';
import { TextPool, unpack } from './packed-texts.js';

it('restores any packed value', () => {
  const text = fc.oneof(
    fc.string(),
    fc.string({ minLength: 30 }),
    fc.string().map((rest) => `\u0001${rest}`),
  );
  const value = fc.jsonValue().chain((json) => fc.tuple(fc.constant(json), fc.array(text)));
  fc.assert(
    fc.property(fc.array(value), (values) => {
      const pool = new TextPool();
      const packed = values.map((one) => pool.pack(one));
      expect(packed.map((json) => unpack(json, pool.texts))).toEqual(JSON.parse(JSON.stringify(values)));
      expect(new Set(pool.texts).size).toBe(pool.texts.length);
    }),
  );
});

it('stores a long text once, also if it occurs often', () => {
  const pool = new TextPool();
  const long = 'a prompt that siblings share '.repeat(100);
  for (let i = 0; i < 50; i++) pool.pack({ messages: [['user', long]], sample: i });
  expect(pool.texts).toEqual([long]);
  expect(pool.bytes).toBeLessThan(long.length + 50 * 60);
});
