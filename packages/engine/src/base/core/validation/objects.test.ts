import { describe, expect, it } from 'vitest';
import { isolated, plainCopy } from './objects.js';

describe('data of many readers', () => {
  it('are shared as they are, and frozen, if freezing protects them', () => {
    const data = { a: [{ b: 'c' }], d: new (class Place {})() };
    const read = isolated(data);
    expect(read).toBe(data);
    expect(isolated(data)).toBe(data);
    expect(() => read.a.push({ b: '' })).toThrow(TypeError);
    expect(() => Object.assign(read.a[0] ?? {}, { b: '' })).toThrow(TypeError);
  });

  it.each<[string, () => object, (value: never) => unknown]>([
    ['a date', () => new Date(0), (value: Date) => value.setFullYear(1)],
    ['a map', () => new Map([['a', [1]]]), (value: Map<string, number[]>) => value.get('a')?.push(2)],
    ['a set', () => new Set([1]), (value: Set<number>) => value.add(2)],
    ['a typed array', () => Float32Array.of(1, 2), (value: Float32Array) => value.fill(0)],
    ['a part of a buffer', () => Buffer.from('abc').subarray(1), (value: Buffer) => value.fill(0)],
  ])('hold for each reader %s of its own', (_, make, change) => {
    const shared = { n: 1 };
    const data = { shared, list: [{ value: make() }] };
    const [one, other] = [isolated(data), isolated(data)];
    change(one.list[0]?.value as never);
    expect(one.list[0]?.value).not.toEqual(make());
    expect(other.list[0]?.value).toEqual(make());
    expect(other).toEqual({ shared, list: [{ value: make() }] });
    expect([one.shared, other.shared]).toEqual([shared, shared]);
    expect(one.shared).toBe(shared);
    expect(() => one.list.pop()).toThrow(TypeError);
  });

  it('may contain themselves and a key named __proto__', () => {
    const data: Record<string, unknown> = JSON.parse('{"__proto__": {"a": 1}}');
    Object.assign(data, { self: data, at: new Date(0) });
    const read = isolated(data);
    expect(read.self).toBe(read);
    expect(Object.keys(read)).toEqual(['__proto__', 'self', 'at']);
    expect(Object.getPrototypeOf(read)).toBe(Object.prototype);
  });
});

describe('a copy of plain objects', () => {
  it('changes nothing of the original, and shares objects of classes', () => {
    const at = new Date(0);
    const data: Record<string, unknown> = { list: [{ a: 1 }], at };
    data.self = data;
    const copy = plainCopy(data);
    expect(copy).toEqual(data);
    expect(copy.self).toBe(copy);
    expect(copy.at).toBe(at);
    (copy.list as unknown[]).shift();
    expect(data.list).toEqual([{ a: 1 }]);
  });

  it('is the value itself if that cannot be read', () => {
    const odd = Object.defineProperty({}, 'a', { enumerable: true, get: () => JSON.parse('{') });
    expect(plainCopy(odd)).toBe(odd);
  });
});
