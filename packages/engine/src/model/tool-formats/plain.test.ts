import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { callsIn } from './index.js';
import { plain } from './plain.js';
import { plainMessages } from './plain-messages.js';

const add = {
  name: 'add',
  parameters: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } }, required: ['a', 'b'] },
};
const search = {
  name: 'search',
  description: 'Looks it up.',
  parameters: {
    type: 'object',
    properties: { query: { type: 'string' }, limit: { type: 'integer' }, tags: { type: 'array' } },
    required: ['query'],
    additionalProperties: false,
  },
};
const now = { name: 'now', parameters: { type: 'object', properties: {} } };
const tools = [add, search, now];

describe('the plain format of calls', () => {
  it.each([
    ['@add(12, 3)', '', [['add', { a: 12, b: 3 }]]],
    ['Let me see.\n@add(1,-2.5e1)\n', 'Let me see.', [['add', { a: 1, b: -25 }]]],
    ['@search(who is (x))', '', [['search', { query: 'who is (x)' }]]],
    ['@search("a, b\\n)", 2, [1, "]"])', '', [['search', { query: 'a, b\n)', limit: 2, tags: [1, ']'] }]]],
    ['@search({"limit": 1, "query": "x"})', '', [['search', { limit: 1, query: 'x' }]]],
    ['@now()@now()\n@add(1,2)', '', [['now', {}], ['now', {}], ['add', { a: 1, b: 2 }]]], // biome-ignore format: rows
    ['mail a@b.c', 'mail a@b.c', []],
    ['', '', []],
  ])('reads %j', (text, content, calls) => {
    const read = callsIn(text, 'plain', tools);
    expect(read?.content).toBe(content);
    expect(read?.calls.map((call) => [call.name, JSON.parse(call.arguments)])).toEqual(calls);
  });

  it.each([
    '@',
    '@add',
    '@add(1, 2',
    '@add(1, 2) and so on',
    '@add(1)',
    '@add(1, 2, 3)',
    '@add(1, x)',
    '@add(1, "2")',
    '@sub(1, 2)',
    '@search(x, 1.5)',
    '@search({"query": "x", "more": 1})',
    '@search("x)',
    '@search(x\n)',
    'so\n@search()x',
  ])('does not read %j', (text) => {
    expect(callsIn(text, 'plain', tools)).toBeUndefined();
  });

  it('reads what it writes', () => {
    const value = fc.oneof(fc.string(), fc.integer(), fc.jsonValue());
    const call = fc.record({
      tool: fc.constantFrom(...tools),
      values: fc.array(value, { maxLength: 3 }),
      extra: value,
    });
    fc.assert(
      fc.property(
        fc.array(call, { minLength: 1, maxLength: 3 }),
        fc.stringMatching(/^[a-z ]*[a-z]$/),
        (rows, content) => {
          const calls = rows.map(({ tool, values, extra }) => {
            const names = Object.keys(tool.parameters.properties);
            const entries = values.slice(0, names.length).map((each, i) => [names[i], each] as const);
            const object = Object.fromEntries(values.length === 2 ? [...entries, ['more', extra] as const] : entries);
            return { name: tool.name, arguments: JSON.stringify(object) };
          });
          const read = plain.read(plain.write({ content, calls }, tools), tools);
          const parsed = (list = read?.calls) => list?.map((each) => [each.name, JSON.parse(each.arguments)]);
          expect(read?.content).toBe(content);
          expect(parsed()).toEqual(parsed(calls));
        },
      ),
    );
  });

  it('begins a call of any tool or of one', () => {
    expect([plain.opening(undefined), plain.opening('add')]).toEqual(['@', '@add(']);
  });
});

describe('a conversation for a template without tools', () => {
  const call = { id: 'c', name: 'add', arguments: '{"a":1,"b":2}' };
  const messages = [
    { role: 'user', content: '1+2?' } as const,
    { role: 'assistant', content: 'Hm.', toolCalls: [call] } as const,
    { role: 'tool', content: '3', toolCallId: 'c' } as const,
  ];
  const texts = (...args: Parameters<typeof plainMessages>) =>
    plainMessages(...args).map(({ role, content }) => [role, content]);

  it('has tools, calls and results in texts', () => {
    const rest = [['user', '1+2?'], ['assistant', 'Hm.\n@add(1,2)'], ['user', '3']]; // biome-ignore format: a row
    const list = '@add(a, b)\n@search(query, limit, tags): Looks it up.\n@now()';
    expect(texts(messages, tools)).toEqual([['system', list], ...rest]);
    expect(texts([{ role: 'system', content: 'Add.' }, ...messages], tools)).toEqual([
      ['system', `Add.\n${list}`],
      ...rest,
    ]);
    expect(texts(messages)).toEqual([rest[0], ['assistant', 'Hm.\n@add({"a":1,"b":2})'], rest[2]]);
  });
});
