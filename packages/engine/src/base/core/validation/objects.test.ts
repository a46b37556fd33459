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

  it('keep the identity of keys and members, and the classes of objects', () => {
    class Place {
      readonly name = 'x';
      greeting() {
        return `in ${this.name}`;
      }
    }
    class Pair extends Float32Array {
      constructor(text: string) {
        super(text.split(',').map(Number));
      }
    }
    const [a, b] = [{ id: 'a' }, { id: 'b' }];
    const others = { places: new Map([['x', new Place()]]), bytes: new Map([['x', Buffer.from('x')]]) };
    const counts = new Int32Array(new SharedArrayBuffer(4));
    const data = {
      nodes: [a, b],
      edges: new Map([[a, [b]]]),
      seen: new Set([b]),
      ...others,
      pair: new Pair('1,2'),
      counts,
    };
    for (const read of [isolated(data), isolated(data)]) {
      const [one, other] = read.nodes as [typeof a, typeof b];
      expect(read.edges.get(one)?.[0]).toBe(other);
      expect(read.seen.has(other)).toBe(true);
      expect(read.places.get('x')?.greeting()).toBe('in x');
      expect(Buffer.isBuffer(read.bytes.get('x'))).toBe(true);
      expect([...read.pair]).toEqual([1, 2]);
      expect(read.counts).toBe(counts);
    }
  });

  it('may be deep and large, and hold no number', () => {
    let deep: object = { n: Number.NaN };
    for (let i = 0; i < 20_000; i++) deep = { deep };
    expect(isolated(deep)).toBe(deep);
    expect(Object.isFrozen(deep)).toBe(true);
    const dated = { list: [Number.NaN], at: new Date(0) };
    expect(isolated(dated).list).toBe(dated.list);
    const ring: Record<string, unknown> = {};
    ring.self = ring;
    expect(isolated(ring)).toBe(ring);
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

  it('may be changed, though the original is frozen', () => {
    const copy = plainCopy(isolated({ list: [{ a: 1 }] }));
    copy.list.push({ a: 2 });
    expect(copy.list).toEqual([{ a: 1 }, { a: 2 }]);
  });

  it('is the value itself if that cannot be read', () => {
    const odd = Object.defineProperty({}, 'a', { enumerable: true, get: () => JSON.parse('{') });
    expect(plainCopy(odd)).toBe(odd);
  });
});
