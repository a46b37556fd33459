import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  copyWithSource,
  exactJson,
  NumberText,
  parseExactly,
  parseWithDigits,
  parseWithSource,
  parseWithSources,
} from './exact-json.js';

const digits = fc
  .tuple(
    fc.constantFrom('', '-'),
    fc.oneof(
      fc.constant('0'),
      fc.tuple(fc.integer({ min: 1, max: 9 }), fc.nat()).map(([a, b]) => `${a}${b}${b}`),
    ),
    fc.constantFrom('', '.0', '.10', '.5', '.1234567890123456789'),
    fc.constantFrom('', 'e5', 'E-7', 'e+400'),
  )
  .map((parts) => parts.join(''));

describe('JSON that keeps the digits of its numbers', () => {
  it('is written as it was read, wherever its numbers stand', () => {
    const json = fc.letrec<{ value: string; leaf: string; list: string; object: string }>((tie) => ({
      value: fc.oneof({ depthSize: 'small' }, tie('leaf'), tie('list'), tie('object')),
      leaf: fc.oneof(
        digits,
        fc.constantFrom('null', 'true'),
        fc.string().map((text) => JSON.stringify(text)),
      ),
      list: fc.array(tie('value'), { maxLength: 4 }).map((items) => `[${items.join(',')}]`),
      object: fc
        .uniqueArray(fc.string(), { maxLength: 4 })
        .chain((keys) => fc.tuple(...keys.map((key) => tie('value').map((value) => [key, value] as const))))
        .map((fields) => {
          const named = fields.map(([key, value]) => `${JSON.stringify(`k${key}`)}:${value}`);
          return `{${named.join(',')}}`;
        }),
    })).value;
    fc.assert(fc.property(json, (text) => exactJson(parseExactly(text)) === text));
  });

  it('has the values of JSON.parse', () => {
    const plain = (value: unknown): unknown =>
      value instanceof NumberText
        ? Number(value)
        : Array.isArray(value)
          ? value.map(plain)
          : typeof value === 'object' && value !== null
            ? Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]))
            : value;
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(plain(parseExactly(text))).toEqual(JSON.parse(text));
      }),
    );
  });

  it.each(['01.0', '{1.0:2}', '1.0.0', '[1.0,]', '1.0 2.0', '"1.0', ''])(
    'refuses what JSON.parse refuses: %s',
    (text) => {
      expect(() => parseExactly(text)).toThrow(SyntaxError);
    },
  );
});

describe('JSON whose long whole numbers become text', () => {
  it.each([
    ['[12345678901234567890,-9007199254740993]', ['12345678901234567890', '-9007199254740993']],
    ['{"a": {"id":1436278513418522630}}', { a: { id: '1436278513418522630' } }],
    ['12345678901234567890', '12345678901234567890'],
    ['[9007199254740992,123456789012345680000,-0,0.12345678901234567890,1e400]', null],
    ['{"a":"id 12345678901234567890","b":1234567890123456,"c":12345678901234567890.5}', null],
  ])('%s', (text, value) => {
    expect(parseWithDigits(text)).toEqual(value ?? JSON.parse(text));
  });

  it('is JSON.parse for all that JSON.stringify writes', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        expect(parseWithDigits(text)).toEqual(JSON.parse(text));
      }),
    );
    expect(() => parseWithDigits('[12345678901234567890,]')).toThrow(SyntaxError);
  });
});

describe('JSON whose objects remember how they were written', () => {
  const keys = new Set(['input']);
  const inputOf = (text: string) => (parseWithSources(text, keys) as { readonly input: object }).input;

  it.each([
    '{"id":2512292042121000001,"price":5.0,"10":1,"2":[1e-7,{"é":"a \\" b"}]}',
    '{"2":2,"1":{"input":{"b":1}}}',
    '{"a":-0}',
  ])('%s', (written) => {
    const text = `{"x": [1.0], "input": ${written.replaceAll(':', ' :\n ')}, "input2": {"y": 2.0}}`;
    expect(parseWithSources(text, keys)).toEqual(JSON.parse(text));
    expect(exactJson(inputOf(text))).toBe(written);
    expect(exactJson({ list: [inputOf(text)] })).toBe(`{"list":[${written}]}`);
    const copy = copyWithSource(inputOf(text));
    expect([copy, exactJson(copy)]).toEqual([inputOf(text), written]);
    expect(exactJson(parseWithSource(written.replaceAll(',', ',  ')))).toBe(written);
  });

  it('and others are written as ever', () => {
    expect(exactJson(inputOf('{"input": {"b": 1, "a": "\\u00e9"}}'))).toBe('{"b":1,"a":"é"}');
    expect(exactJson({ a: 1 })).toBe('{"a":1}');
    expect(() => parseWithSources('{"input": 1.0', keys)).toThrow(SyntaxError);
  });

  it('has the values of JSON.parse', () => {
    fc.assert(
      fc.property(fc.json(), (json) => {
        const text = `{"1": 1.0, "input": ${json}}`;
        expect(parseWithSources(text, keys)).toEqual(JSON.parse(text));
      }),
    );
  });
});
