import { describe, expect, it } from 'vitest';
import { golden } from '../../../test/goldens.js';
import { boxed, integer, oneOf, tagged } from './parsers.js';

describe('oneOf', () => {
  const verdict = oneOf('<approve>', '<reject>');

  it('reads the one option that occurs', () => {
    expect(verdict('It holds. <approve>')).toBe('<approve>');
    expect(verdict('<reject> since 3 > 2, hence <reject>')).toBe('<reject>');
    expect(verdict('approve')).toBeUndefined();
    expect(verdict('<approve> or <reject>')).toBeUndefined();
  });

  it('prefers the longer of two options that overlap, and takes options literally', () => {
    expect(oneOf('correct', 'incorrect')('incorrect')).toBe('incorrect');
    expect(oneOf('correct', 'incorrect')('correct')).toBe('correct');
    expect(oneOf('a.c', '(')('abc')).toBeUndefined();
    expect(oneOf('a.c', '(')('f(x)')).toBe('(');
  });

  it('refuses options that cannot be distinguished', () => {
    expect(() => oneOf()).toThrow('expected different non-empty strings, got []');
    expect(() => oneOf('a', 'a')).toThrow('got ["a","a"]');
    expect(() => oneOf('')).toThrow('got [""]');
  });
});

describe('boxed', () => {
  it('reads the last box', () => {
    expect(boxed('\\boxed{1} no, \\boxed{ \\frac{1}{2} }')).toBe('\\frac{1}{2}');
    expect(boxed('1')).toBeUndefined();
    expect(boxed('\\boxed{ }')).toBeUndefined();
  });
});

describe('integer', () => {
  it('reads the box if there is one, else the whole text', () => {
    expect(integer(' -12 ')).toBe(-12);
    expect(integer('so 3: \\boxed{007}')).toBe(7);
    for (const text of ['', '1.5', 'about 3', '\\boxed{x} 3', '99999999999999999999'])
      expect(integer(text), text).toBeUndefined();
  });
});

describe('tagged', () => {
  it('reads the last pair of tags', () => {
    const query = tagged('search');
    expect(query('a <search> b </search> c <search>d <e></search>')).toBe('d <e>');
    for (const text of [
      '',
      'b',
      '<search>b',
      'b</search>',
      '</search>b<search>',
      '<search> </search>',
      '<find>b</find>',
    ])
      expect(query(text), text).toBeUndefined();
  });

  it('agrees with the original', () => {
    type Case = { text: string; answer: string | null };
    const { extraction } = golden<{ extraction: Case[] }>('grading/qa');
    for (const { text, answer } of extraction) expect(tagged('answer')(text), text).toBe(answer ?? undefined);
  });

  it('refuses a name that is invalid in a tag', () => {
    for (const name of ['', 'a b', '<a>']) expect(() => tagged(name)).toThrow('tagged(...): expected letters');
  });
});
