import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fitsSchema } from '../../base/core/validation/json-schema.js';
import { callsIn, formatOfTemplate, toolFormat, toolFormatNames } from './index.js';
import { jsonMembers } from './json-object.js';
import { withoutThinking } from './thinking.js';

const search = {
  name: 'search',
  parameters: {
    type: 'object',
    properties: {
      query: { type: 'string' },
      limit: { type: 'integer' },
      where: { type: 'object' },
      exact: { type: 'boolean' },
    },
    required: ['query'],
  },
};
const look = { name: 'look-up', parameters: { type: 'object', properties: { id: { type: 'string' } } } };
const tools = [search, look];

/** Texts that no format has to quote. */
const words = fc.stringMatching(/^[a-zé][a-zé ]{0,8}[a-z]$/);
const searchCall = fc
  .record(
    { query: words, limit: fc.integer(), where: fc.dictionary(words, fc.integer()), exact: fc.boolean() },
    { requiredKeys: ['query'] },
  )
  .map((values) => ({ name: 'search', arguments: JSON.stringify(values) }));
const lookCall = fc
  .record({ id: words }, { requiredKeys: [] })
  .map((values) => ({ name: 'look-up', arguments: JSON.stringify(values) }));
const calls = fc.array(fc.oneof(searchCall, lookCall), { minLength: 1, maxLength: 3 });
const parsed = (list: readonly { name: string; arguments: string }[] = []) =>
  list.map((call) => [call.name, JSON.parse(call.arguments)]);

describe.each(toolFormatNames)('the format %s', (name) => {
  const format = toolFormat(name);

  // MCP allows dots and slashes, and some servers write colons.
  it.each(['user-profile/update', 'admin.tools.list', 'ns:look', 'mcp__x', 'größe'])(
    'calls a tool named %s',
    (called) => {
      const named = [{ ...look, name: 'user-profile' }, { ...look, name: called }, look];
      const call = { name: called, arguments: '{"id":"a"}' };
      expect(parsed(callsIn(format.write({ content: '', calls: [call] }, named), name, named)?.calls)).toEqual([
        [called, { id: 'a' }],
      ]);
    },
  );

  it('reads the calls that it writes', () => {
    fc.assert(
      fc.property(calls, words, (list, content) => {
        const read = callsIn(format.write({ content, calls: list }, tools), name, tools);
        expect(read?.content).toBe(name === 'llama' ? '' : content); // which has calls and nothing beside them
        expect(parsed(read?.calls)).toEqual(parsed(list));
        const silent = callsIn(format.write({ content: '', calls: list }, tools), name, tools);
        expect(silent?.content).toBe('');
        expect(parsed(silent?.calls)).toEqual(parsed(list));
      }),
      { numRuns: 50 },
    );
  });

  it('reads values that hold the marks of its own and of other formats', () => {
    const marks = toolFormatNames.flatMap((each) => {
      const format = toolFormat(each);
      const text = format.write({ content: '', calls: [{ name: 'look-up', arguments: '{"id":"a"}' }] }, tools);
      return [format.opening(undefined), text, ...(text.match(/<[^>]+>|\[[A-Z_]+\]/g) ?? [])];
    });
    const part = fc.oneof(fc.constantFrom(...marks), words, fc.constantFrom('{', '}', '"', '\\', ';', '\n'));
    const text = fc
      .array(part, { maxLength: 5 })
      .map((parts) => parts.join(''))
      // XML has no sign for such a text.
      .filter((each) => !/<\/parameter>\s*(<parameter=|<\/function>\s*<\/tool_call>\s*(<tool_call>|$))/.test(each));
    fc.assert(
      fc.property(text, text, words, (id, query, content) => {
        const list = [
          { name: 'look-up', arguments: JSON.stringify({ id }) },
          { name: 'search', arguments: JSON.stringify({ query, limit: 1 }) },
        ];
        expect(parsed(callsIn(format.write({ content, calls: list }, tools), name, tools)?.calls)).toEqual(
          parsed(list),
        );
      }),
    );
  });

  it('keeps the digits of numbers', () => {
    const written = '{"query":"a","limit":12345678901234567891,"where":{"x":1.0,"y":[1e-7,2]}}';
    const text = format.write({ content: '', calls: [{ name: 'search', arguments: written }] }, tools);
    for (const digits of ['12345678901234567891', '1.0', '1e-7']) expect(text).toContain(digits);
    const [call] = callsIn(text, name, tools)?.calls ?? [];
    expect(call?.arguments.replaceAll(' ', '')).toBe(written);
  });

  it('begins what it writes as it opens a required call', () => {
    const text = format.write({ content: '', calls: [{ name: 'search', arguments: '{"query":"x"}' }] }, tools);
    expect(text.startsWith(format.opening(undefined))).toBe(true);
    expect(text.startsWith(format.opening('search'))).toBe(true);
  });

  it('reads a text without calls as it stands', () => {
    for (const text of ['', ' 4 \n', '{"answer": 4}', 'a < b, [x], f(x) @ home']) {
      expect(callsIn(text, name, tools)).toEqual({ content: text, calls: [] });
    }
  });

  it('reads no call that is cut off, of another tool or with other arguments', () => {
    const call = { name: 'search', arguments: '{"query":"who","limit":3}' };
    const text = format.write({ content: '', calls: [call] }, tools);
    const opened = format.opening('search').length;
    for (let end = opened; end < text.length; end++) expect(callsIn(text.slice(0, end), name, tools)).toBeUndefined();
    expect(callsIn(text, name, [look])).toBeUndefined();
    expect(callsIn(`${text} and so on`, name, tools)).toBeUndefined();
    for (const values of ['{}', '{"query":1.5}', '{"query":"x","limit":"3 or 4"}', '{"query":"x","exact":7}']) {
      if (name === 'qwen-coder' && values.includes('1.5')) continue; // which is a text there
      const other = format.write({ content: '', calls: [{ ...call, arguments: values }] }, tools);
      expect(callsIn(other, name, tools)).toBeUndefined();
    }
  });

  it('never fails, whatever the text', () => {
    const opening = [format.opening(undefined), format.opening('search')];
    const part = fc.oneof(
      fc.string(),
      fc.constantFrom(...opening, '{', '}', '"', '\\', ',', '</tool_call>', '</function>'),
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 8 }), (parts) => {
        callsIn(parts.join(''), name, tools);
      }),
    );
    expect(callsIn(`${opening[1]}{"query":${'['.repeat(1e5)}`, name, tools)).toBeUndefined();
  });
});

describe('calls as models write them', () => {
  const written = '{"b": 1.0,  "query":"caf\\u00e9", "query":"x" }';

  it.each([
    ['hermes', `Hm.\n<tool_call>\n{"arguments": ${written}, "name": "search"}\n</tool_call>\n`],
    ['hermes', `Hm.<tool_call>{"name":"search","arguments":${written}}</tool_call>`],
    ['llama', `{"type": "function", "name": "search", "parameters": ${written}}`],
    ['llama', `<|python_tag|>{"name": "search", "arguments": ${written}}`],
    ['mistral', `Hm.[TOOL_CALLS] [{"name": "search", "arguments": ${written}, "id": "abcdefghi"}]`],
    ['mistral-args', `Hm.[TOOL_CALLS]search[ARGS]${written}`],
    ['mistral-args', `Hm.\n[TOOL_CALLS]search[CALL_ID]abcdefghi[ARGS] ${written}\n`],
  ] as const)('keep the text of their arguments: %s %s', (name, text) => {
    const read = callsIn(text, name, tools);
    expect(read).toEqual({ content: name === 'llama' ? '' : 'Hm.', calls: [{ name: 'search', arguments: written }] });
  });

  it.each([
    ['hermes', '<tool_call>\n{"name": "search", "arguments": "{}"}\n</tool_call>'],
    ['hermes', '<tool_call>\n{"name": "look-up", "arguments": {}, "why": "so"}\n</tool_call>'],
    ['hermes', '<tool_call>\n{"name": "look-up"}\n</tool_call>'],
    ['hermes', '<tool_call>\n{"name": "look-up", "arguments": {}}'],
    ['llama', '<|python_tag|>print(1)'],
    ['llama', '{"type": 1, "name": "look-up", "parameters": {}}'],
    ['llama', '{"name": "look-up"}'],
    ['llama', '{"name": "look-up", "par'],
    ['llama', '<|python_tag|>{"name": "Ann"}'],
    ['llama', '{"name": "look-up", "parameters": {}} {"name": "look-up", "parameters": {}}'],
    ['mistral', '[TOOL_CALLS] []'],
    ['mistral', '[TOOL_CALLS] [1, {"name": "look-up", "arguments": {}}]'],
    ['mistral', '[TOOL_CALLS] {"name": "look-up", "arguments": {}}'],
    ['mistral-args', '[TOOL_CALLS] [{"name": "look-up", "arguments": {}}]'],
    ['mistral-args', '[TOOL_CALLS]look-up{}'],
    ['mistral-args', '[TOOL_CALLS]look-up[ARGS][]'],
    ['mistral-args', '[TOOL_CALLS]look-up[ARGS]{}[TOOL_CALLS]look-up[ARGS]'],
    ['qwen-coder', '<tool_call>\n<function=look-up>\n<parameter=id>\na\n</parameter>\nb</function>\n</tool_call>'],
    [
      'qwen-coder',
      '<tool_call>\n<function=look-up>\n<parameter=id>a</parameter><parameter=id>b</parameter></function></tool_call>',
    ],
  ] as const)('are refused: %s %s', (name, text) => {
    expect(callsIn(text, name, tools)).toBeUndefined();
  });

  it.each(toolFormatNames)('are no answers in JSON: %s', (name) => {
    const value = fc.record({ name: fc.jsonValue(), type: fc.jsonValue(), age: fc.jsonValue() }, { requiredKeys: [] });
    fc.assert(
      fc.property(value, fc.constantFrom(0, 2), fc.constantFrom('', ' ', '\n'), (answer, indent, space) => {
        const text = space + JSON.stringify(answer, null, indent);
        expect(callsIn(text, name, tools)).toEqual({ content: text, calls: [] });
      }),
    );
  });

  it('have values of the types of their schema in XML', () => {
    const parameter = (name: string, value: string) => `<parameter=${name}>\n${value}\n</parameter>\n`;
    const body = ['query', 'limit', 'where', 'exact', 'more'].map((name, i) =>
      parameter(name, ['12\n "x"', '12', '{"a": [1]}', 'True', 'so it is'][i] ?? ''),
    );
    const text = `<tool_call>\n<function=search>\n${body.join('')}</function>\n</tool_call>`;
    const values = { query: '12\n "x"', limit: 12, where: { a: [1] }, exact: true, more: 'so it is' };
    expect(parsed(callsIn(text, 'qwen-coder', tools)?.calls)).toEqual([['search', values]]);
  });

  const optional = (type: string) => ({ anyOf: [{ type }, { type: 'null' }] });
  it.each([
    [optional('string'), '123', '123'],
    [optional('string'), 'none', 'none'],
    [optional('string'), 'null', null],
    [optional('integer'), 'None', null],
    [optional('boolean'), 'False', false],
    [{ type: ['string', 'null'] }, '[1]', '[1]'],
    [{ type: 'string' }, 'null', 'null'],
    [{ enum: ['1', 'None', 'constructor'] }, '1', '1'],
    [{ enum: ['1', 'None', 'constructor'] }, 'None', 'None'],
    [{ enum: ['1', 'None', 'constructor'] }, 'constructor', 'constructor'],
    [{ $ref: '#/$defs/text' }, '12', '12'],
    [{ $ref: '#/definitions/text' }, 'true', 'true'],
    [{ oneOf: [{ type: 'array' }, { type: 'string' }] }, '["a"]', ['a']],
    [{ allOf: [{ type: 'string' }] }, '5', '5'],
    [{}, '5', 5],
  ])('have in XML a reading that fits their schema: %j, %s', (schema, value, expected) => {
    const text = { type: 'string' };
    const parameters = { properties: { x: schema }, $defs: { text }, definitions: { text } };
    const call = `<tool_call>\n<function=f>\n<parameter=x>\n${value}\n</parameter>\n</function>\n</tool_call>`;
    const read = callsIn(call, 'qwen-coder', [{ name: 'f', parameters }]);
    expect(parsed(read?.calls)).toEqual([['f', { x: expected }]]);
  });
});

describe('the format of a chat template', () => {
  const template = (name: string) => readFileSync(`test/fixtures/chat-templates/${name}.jinja`, 'utf8');

  it.each([
    ['hermes', template('qwen3')],
    ['hermes', template('qwen2_5')],
    ['qwen-coder', "{% if tools %}{% endif %}{{ '<tool_call>\\n<function=' + call.name }}"],
    ['llama', `{% if tools %}{% endif %}{{ '"parameters": ' }}{% if message.role == 'ipython' %}{% endif %}`],
    ['mistral', "{% if tools %}[AVAILABLE_TOOLS]{% endif %}{{ '[TOOL_CALLS] [' }}"],
    ['mistral-args', "{% if tools %}{% endif %}{{ '[TOOL_CALLS]' + call.name + '[ARGS]' }}"],
    [undefined, "{% if tools %}{% endif %}{{ '<tool_call>' + call.name + '<arg_key>' }}"],
    ['plain', '{% for message in messages %}{{ message.content }}{% endfor %}'],
  ])('is %s', (name, source) => {
    expect(formatOfTemplate(source)).toBe(name);
  });
});

describe('what a model thought', () => {
  const ofMagistral = (text: string) => text.replaceAll('<think>', '[THINK]').replaceAll('</think>', '[/THINK]');

  it.each([
    ['4', { rest: '4' }],
    ['<think>\na\n</think>\n\n4', { reasoning: 'a', rest: '4' }],
    ['\n<think>a</think>4</think>', { reasoning: 'a', rest: '4</think>' }],
    ['a\n</think>\n4', { reasoning: 'a', rest: '4' }],
    ['<think>\n\n</think>\n\n4', { rest: '4' }],
    ['<think>\nand so on', { reasoning: 'and so on', rest: '' }],
    ['so <think>a', { rest: 'so <think>a' }],
  ])('is taken off %j', (text, parts) => {
    expect(withoutThinking(text)).toEqual(parts);
    expect(withoutThinking(ofMagistral(text))).toEqual(JSON.parse(ofMagistral(JSON.stringify(parts))));
  });

  it.each([
    ['<think>a[/THINK]b</think>c', { reasoning: 'a[/THINK]b', rest: 'c' }],
    ['[THINK]a</think>b[/THINK]c', { reasoning: 'a</think>b', rest: 'c' }],
  ])('ends with the mark of its own kind: %j', (text, parts) => {
    for (const opened of [true, false, undefined]) expect(withoutThinking(text, opened)).toEqual(parts);
  });

  it.each([
    ['the tag </think>, then 4', { rest: 'the tag </think>, then 4' }],
    ['<think>a</think>4</think>', { reasoning: 'a', rest: '4</think>' }],
    ['<think>a', { reasoning: 'a', rest: '' }],
  ])('begins with its tag if the prompt has not begun it: %j', (text, parts) => {
    expect(withoutThinking(text, false)).toEqual(parts);
  });
});

describe('arguments', () => {
  const schema = {
    type: 'object',
    properties: {
      n: { type: 'integer' },
      kind: { enum: ['a', { b: 1 }] },
      one: { const: 1 },
      maybe: { type: ['null', 'array'] },
    },
    required: ['n'],
    additionalProperties: false,
  };

  it.each([
    [{ n: 1 }, true],
    [{ n: 1, kind: { b: 1 }, one: 1, maybe: null }, true],
    [{ n: 1, maybe: [] }, true],
    [{}, false],
    [{ n: 1.5 }, false],
    [{ n: 1, kind: 'b' }, false],
    [{ n: 1, one: 2 }, false],
    [{ n: 1, maybe: {} }, false],
    [{ n: 1, more: 1 }, false],
    [JSON.parse('{"n": 1, "__proto__": 1}'), false],
  ])('%j fit their schema: %s', (values, fits) => {
    expect(fitsSchema(values, schema)).toBe(fits);
  });

  it('of any schema fit an empty one', () => {
    fc.assert(fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (values) => fitsSchema(values, {})));
  });

  it('are split into the texts of their members', () => {
    const space = fc.constantFrom('', ' ', '\n\t');
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), space, (values, gap) => {
        const members = Object.entries(values).map(([name, value]) => [name, JSON.stringify(value)] as const);
        const text = members
          .map(([name, value]) => `${gap}${JSON.stringify(name)}${gap}:${gap}${value}${gap}`)
          .join(',');
        expect(jsonMembers(`${gap}{${text}}${gap}`)).toEqual(new Map(members));
      }),
    );
    expect([jsonMembers('[]'), jsonMembers('{"a":1'), jsonMembers(' {} ')]).toEqual([undefined, undefined, new Map()]);
  });
});
