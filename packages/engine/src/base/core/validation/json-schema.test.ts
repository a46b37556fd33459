import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { paired } from '../../../../../../test/schemas/pairs.js';
import { ArgumentError } from '../errors.js';
import { exactJson, parseExactly, parseWithSource } from '../exact-json.js';
import type { JsonSchema } from '../message.js';
import { fitsJsonSchema, fitsSchema, schemaKeywords } from './json-schema.js';

/** Schemas and values with the verdicts of Python's jsonschema; `npm run verify -- schemas` compares more. */
const stored = readFileSync(new URL('../../../../../../test/schemas/verdicts.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((line) => parseExactly(line) as [unknown, string, boolean])
  .map(([schema, value, verdict]) => [parseWithSource(exactJson(schema)) as JsonSchema, value, verdict] as const);

describe('a JSON schema', () => {
  it('is read as jsonschema reads it', () => {
    for (const [schema, value, verdict] of stored)
      expect([value, schema, fitsJsonSchema(value, schema)]).toEqual([value, schema, verdict]);
  });

  it('has only keywords that random pairs compare with jsonschema', () => {
    const others = ['$dynamicRef', '$recursiveRef', 'format', 'unevaluatedItems', 'unevaluatedProperties'];
    expect([...paired, ...others].sort()).toEqual([...schemaKeywords].sort());
  });

  it.each([
    ['date', '2026-11-27', '2026-11-31'],
    ['time', '10:20:30', '25:00:00'],
    ['date-time', '2026-11-27T10:20:30Z', '2026-11-27'],
    ['duration', 'P3D', '3 days'],
    ['email', 'ann@example.com', 'ann'],
    ['uri', 'https://example.com/a', 'a b'],
    ['uuid', '123e4567-e89b-12d3-a456-426614174000', '123e4567'],
    ['ipv4', '127.0.0.1', '256.0.0.1'],
    ['ipv6', '::1', '1::2::3'],
  ])('has the format %s', (format, right, wrong) => {
    expect([fitsSchema(right, { format }), fitsSchema(wrong, { format }), fitsSchema(5, { format })]).toEqual([
      true,
      false,
      true,
    ]);
  });

  it.each<[string, JsonSchema]>([
    ['an unknown keyword', { shape: 'round' }],
    ['an unknown format', { format: 'poem' }],
    ['an unknown type', { type: 'text' }],
    ['malformed keywords', { required: 'a', enum: 'a', minimum: 'a', properties: 'a', pattern: 5, allOf: {} }],
    ['a reference to another document', { $ref: 'https://example.com/schema.json' }],
    ['a reference to nothing', { $ref: '#/definitions/none' }],
    ['look-ahead', { pattern: '^(?!a)' }],
    ['more than 1,000 repetitions', { pattern: '^a{2,1001}$' }],
    ['the opposite of look-ahead', { not: { pattern: '^(?!b)' } }],
    ['the opposite of a reference to another document', { not: { $ref: 'other.json' } }],
    ['a choice with an unread part', { oneOf: [{ pattern: '(?=a)' }, { type: 'string' }] }],
    ['a condition that is not read', JSON.parse('{"if": {"pattern": "(?=b)"}, "then": false}')],
  ])('does not restrict by %s', (_, schema) => {
    expect(fitsSchema('a', schema)).toBe(true);
  });

  it.each([
    [0.3, 0.1, true],
    [19.99, 0.01, true],
    [0.35, 0.1, false],
    [1e30, 3, false],
  ])('of decimal multiples: %d of %d is %s', (value, multipleOf, fits) => {
    expect(fitsSchema(value, { multipleOf })).toBe(fits);
  });

  it.each([
    '^\\s$',
    '^\\S$',
    '^[\\s]$',
    '^[^\\s]$',
    '^[\\S]$',
    '^[^\\S]$',
    '^[\\w\\s]$',
    '^[[\\s]$',
    '^[\\]\\S]$',
    '^\\\\s$',
    '^[\\\\s]$',
    '^\\W$',
    '^\\D$',
  ])('matches the characters that JavaScript matches: %s', (pattern) => {
    const starts = [0, 0x80, 0x1640, 0x1fe0, 0x2020, 0x2fe0, 0xfee0, 0x10ff80];
    const letters = starts.flatMap((start) => Array.from({ length: 0x80 }, (_, i) => String.fromCodePoint(start + i)));
    const expression = new RegExp(pattern, 'u');
    expect(letters.filter((letter) => fitsSchema(letter, { pattern }))).toEqual(
      letters.filter((letter) => expression.test(letter)),
    );
  });

  it('refers to itself as deep as a value goes', () => {
    const schema = { type: 'object', properties: { next: { $ref: '#' } }, required: ['id'] };
    let value: Record<string, unknown> = { id: 0 };
    for (let depth = 1; depth < 400; depth++) value = { id: depth, next: value };
    expect(fitsSchema(value, schema)).toBe(true);
    expect(fitsSchema({ id: 1, next: {} }, schema)).toBe(false);
  });

  it('may refer to a place by its anchor or its id', () => {
    const schema = {
      $id: 'https://example.com/s',
      $defs: { a: { $anchor: 'a', type: 'string' }, b: { $id: 'b', type: 'null' } },
    };
    for (const $ref of ['#a', 'https://example.com/s#a', 'https://example.com/s#/$defs/a'])
      expect([fitsSchema('x', { ...schema, $ref }), fitsSchema(1, { ...schema, $ref })]).toEqual([true, false]);
    expect(fitsSchema(1, { ...schema, $ref: 'b' })).toBe(false);
  });
});

describe('a costly JSON schema', () => {
  const doubling = Object.fromEntries(
    Array.from({ length: 40 }, (_, i) => [
      `a${i}`,
      { allOf: [{ $ref: `#/$defs/a${i + 1}` }, { $ref: `#/$defs/a${i + 1}` }] },
    ]),
  );
  const letters = 'a'.repeat(20_000);
  const names = Array.from({ length: 20_000 }, (_, i) => `n${i}`);

  it.each<[string, JsonSchema, unknown]>([
    ['references that double', { $ref: '#/$defs/a0', $defs: doubling }, 'x'],
    ['a reference to itself', { $ref: '#' }, 'x'],
    [
      'two that refer to each other',
      { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: { not: { $ref: '#/$defs/a' } } } },
      'x',
    ],
    ['long lists compared with each other', { items: { enum: names } }, names],
    ['a pattern of many states on a long text', { pattern: '^(\\w{1,1000}x)+$' }, letters],
    [
      'many patterns for many names',
      { patternProperties: Object.fromEntries(names.map((name) => [`^${name}$`, true])) },
      Object.fromEntries(names.map((name) => [name, 1])),
    ],
  ])('of %s is given up', (_, schema, value) => {
    expect(() => fitsSchema(value, schema)).toThrow(ArgumentError);
  });

  it.each(['^(a+)+$', '^(a|a)*$', '(\\w*\\s*)*!', '^(a|aa)+$', '(.*)*x'])('is fast with the pattern %s', (pattern) => {
    expect(fitsSchema(`${'a'.repeat(2000)}!b`, { pattern, type: 'null' })).toBe(false);
    expect(fitsSchema(`${'a'.repeat(2000)}b`, { pattern })).toBe(false);
  });

  it('of a long list without repetition is cheap', () => {
    expect(fitsSchema(names, { uniqueItems: true, items: { type: 'string', minLength: 2 } })).toBe(true);
    expect(fitsSchema([...names, 'n7'], { uniqueItems: true })).toBe(false);
  });
});
