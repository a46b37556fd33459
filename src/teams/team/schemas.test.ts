import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { agent } from './agent.js';
import { defineTeam } from './team.js';

const verdict = agent({ parse: z.object({ score: z.number().min(0), why: z.string().optional() }) });

describe('a schema as a parser', () => {
  it('reads every value that it accepts, alone or in the only fence', () => {
    const { parse } = agent({ parse: z.json() });
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

describe('a value that is not a schema of zod 4', () => {
  // The field that zod 3 puts into each of its schemas.
  const old = { _def: { typeName: 'ZodObject' }, parse: () => 1, safeParse: () => 1 };
  it.each([
    ['zod 3', old, /got one of zod 3: npm install zod@4/],
    ['an object', {}, /expected a (function or a )?zod schema/],
    ['nothing', null, /expected a (function or a )?zod schema/],
  ])('is refused with the reason: %s', (_, schema, message) => {
    expect(() => agent({ parse: schema as never })).toThrow(message);
    expect(() =>
      defineTeam({ task: schema as never, agents: { a: agent() }, play: async () => 1, reward: () => 1 }),
    ).toThrow(message);
  });
});
