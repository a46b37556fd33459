import { runInNewContext } from 'node:vm';
import { ArgumentError, isObject } from '@drmas/engine/errors';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import * as mini from 'zod/mini';
import { golden } from '../../../test/goldens.js';
import { timeForMishaps } from '../../../test/support/time-and-chance.js';
import { agent } from './agent.js';
import { boxed, integer, jsonParser, oneOf, tagged } from './parsers.js';
import type { StandardSchema } from './standard-schema.js';
import { defineTeam } from './team.js';

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

  it('does not count what the model thinks', () => {
    expect(verdict('<think>Not <reject>?</think>\n<approve>')).toBe('<approve>');
    expect(verdict('Not <reject>?</think><approve>')).toBe('<approve>'); // the template wrote <think>
    expect(verdict('<think>So <approve>')).toBeUndefined();
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
    expect(integer('<think>8, or 9?</think>\n9')).toBe(9);
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

const verdict = agent({ parse: z.object({ score: z.number().min(0), why: z.string().optional() }) });

describe('a schema as a parser', () => {
  it('reads every value that it accepts, alone or in the only fence', () => {
    const parse = jsonParser(z.json());
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        fc.pre(!text.includes('"__proto__"')); // zod drops that key, see the next test
        const expected = JSON.parse(text);
        expect(parse(text)).toEqual(expected);
        expect(parse(`I think so.\n\`\`\`json\n${text}\n\`\`\`\n`)).toEqual(expected);
      }),
    );
  });

  it('reads the only fence with JSON beside fences of other languages', () => {
    const [code, json] = ['```python\nprint({})\n```', '```json\n{"score": 3}\n```'];
    for (const text of [`${code}\n${json}`, `${json}\nas in\n${code}`])
      expect(verdict.parse(text)).toEqual({ score: 3 });
  });

  it('reads a beginning of a fence that is repeated without an end', () => {
    const repeated = '```json\n{"score": 1}\n'.repeat(100_000);
    expect(verdict.parse(repeated)).toBeUndefined();
    expect(verdict.parse(`\`\`\`json\n{"score": 3}\n\`\`\`\n${repeated}`)).toEqual({ score: 3 });
  });

  it('reads what follows the thinking', () => {
    expect(verdict.parse('<think>{"score": 1}?</think>\n\n{"score": 3}')).toEqual({ score: 3 });
    expect(verdict.parse('<think>```json\n{"score": 1}\n```</think>```json\n{"score": 3}\n```')).toEqual({ score: 3 });
  });

  it('leaves out keys that would set a prototype', () => {
    expect(agent({ parse: z.json() }).parse('{"a": 1, "__proto__": {"b": 2}}')).toEqual({ a: 1 });
  });

  it.each([
    ['another type', '{"score": "3"}'],
    ['out of range', '{"score": -1}'],
    ['words around it', 'The score is {"score": 3}'],
    ['cut short', '{"score": 3'],
    ['no strict JSON', "{score: 3, why: 'x',}"],
    ['two fences', '```json\n{"score": 1}\n```\n```json\n{"score": 2}\n```'],
    ['nothing', ''],
  ])('takes for invalid: %s', (_, text) => {
    expect(verdict.parse(text)).toBeUndefined();
  });

  it('drops keys that the schema does not name', () => {
    expect(verdict.parse('{"score": 3, "more": 1}')).toEqual({ score: 3 });
  });
});

describe('a schema of another library that follows Standard Schema', () => {
  type Answer = { value: { n: number } } | { issues: { message: string; path?: (string | { key: string })[] }[] };
  const standard = (validate: (value: unknown) => Answer | Promise<Answer>) =>
    ({ '~standard': { version: 1, vendor: 'other', validate } }) as const;
  const wrong = (path: string | { key: string }) => ({ issues: [{ message: 'no number', path: [path] }] });
  const check = (value: unknown): Answer => {
    const n: unknown = isObject(value) ? value.n : undefined;
    return typeof n === 'number' ? { value: { n: n + 1 } } : wrong({ key: 'n' });
  };
  const teamOf = (task: StandardSchema<{ n: number }>) =>
    defineTeam({ task, agents: { a: agent() }, play: async () => 1, reward: () => 1 });

  it.each([
    ['an object', standard(check)],
    // Schemas of ArkType are functions, but no parsers: called with a text and a context, they throw.
    ['a function', Object.assign(() => expect.fail(), standard(check))],
  ])('reads texts and checks tasks: %s', (_, schema) => {
    const { parse } = agent({ parse: schema });
    expect(['{"n": 1}', '```json\n{"n": 2}\n```', '{"n": "1"}', 'n'].map((text) => parse(text))).toEqual([
      { n: 2 },
      { n: 3 },
      undefined,
      undefined,
    ]);
    const { task } = teamOf(schema);
    expect(task.parse({ n: 1 })).toEqual({ n: 2 });
    expect(task.safeParse({}).error?.issues).toEqual([expect.objectContaining({ message: 'no number', path: ['n'] })]);
  });

  it('reads texts and checks tasks: zod/mini', () => {
    const schema = mini.object({ n: mini.number() });
    expect(agent({ parse: schema }).parse('{"n": 1}')).toEqual({ n: 1 });
    expect(teamOf(schema).task.safeParse({ n: '1' }).error?.issues).toMatchObject([{ path: ['n'] }]);
  });

  it('accepts a value whose issues are null', () => {
    const schema = standard(() => ({ value: { n: 1 }, issues: null }) as unknown as Answer);
    expect(agent({ parse: schema }).parse('{}')).toEqual({ n: 1 });
  });

  it.each([
    ['resolves', async (value: unknown) => check(value)],
    ['rejects', () => Promise.reject(new Error('unheard'))],
    ['is of another realm', () => runInNewContext('Promise.reject(new Error("unheard"))') as Promise<Answer>],
  ])('is refused if it answers with a promise that %s', async (_, validate) => {
    const slow = standard(validate);
    expect(() => agent({ parse: slow }).parse('{"n": 1}')).toThrow('the schema of other checks asynchronously');
    expect(() => teamOf(slow).task.safeParse({ n: 1 })).toThrow(ArgumentError);
    await timeForMishaps(1); // a rejection that nobody hears of would fail this test
  });
});

describe('a value that is not a schema', () => {
  // The field that zod 3 puts into each of its schemas, which follow Standard Schema from 3.24 on.
  const old = { _def: { typeName: 'ZodObject' }, parse: () => 1, safeParse: () => 1 };
  it.each([
    ['zod 3', old, /got one of zod 3: npm install zod@4/],
    [
      'a schema that only types values',
      { '~standard': { version: 1, vendor: 'other' } },
      /a schema of zod, or of anot/,
    ],
    ['an object', {}, /expected a (function, a )?schema of zod, or of another library that follows Standard Schema/],
    ['nothing', null, /expected a (function, a )?schema of zod/],
  ])('is refused with the reason: %s', (_, schema, message) => {
    expect(() => agent({ parse: schema as never })).toThrow(message);
    expect(() =>
      defineTeam({ task: schema as never, agents: { a: agent() }, play: async () => 1, reward: () => 1 }),
    ).toThrow(message);
  });
});
