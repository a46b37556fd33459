import { DialectError } from '@drmas/engine/errors';
import { describe, expect, it } from 'vitest';
import { chatDialect } from './chat-dialect.js';
import { messagesDialect } from './messages-dialect.js';
import { responsesDialect } from './responses-dialect.js';

const call = { id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } };
const schema = { type: 'object' };
const bodies = {
  chat: {
    ...{ model: 'm', stream: false, stream_options: { include_usage: true }, temperature: 1, top_p: 1, top_k: 0 },
    ...{ seed: 1, n: 1, max_tokens: 9, stop: ['x'], logprobs: true, parallel_tool_calls: true },
    messages: [
      { role: 'user', content: [{ type: 'text', text: 'a' }] },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', content: 'b', tool_call_id: 'c1' },
    ],
    tools: [{ type: 'function', function: { name: 'f', description: '', parameters: schema, strict: true } }],
    tool_choice: { type: 'function', function: { name: 'f' } },
    response_format: { type: 'json_schema', json_schema: { schema } },
  },
  messages: {
    ...{ model: 'm', stream: false, temperature: 1, top_p: 1, top_k: 0, max_tokens: 9, stop_sequences: ['x'] },
    system: [{ type: 'text', text: 'a' }],
    messages: [
      { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'f', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'b', is_error: true }] },
    ],
    tools: [{ name: 'f', description: '', input_schema: schema, strict: true }],
    tool_choice: { type: 'tool', name: 'f' },
    output_config: { format: { type: 'json_schema', schema } },
  },
  responses: {
    ...{ model: 'm', stream: false, temperature: 1, top_p: 1, max_output_tokens: 9, instructions: 'a' },
    input: [
      { role: 'user', content: 'a' },
      { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c1', output: 'b' },
    ],
    tools: [{ type: 'function', name: 'f', description: '', parameters: schema, strict: true }],
    tool_choice: { type: 'function', name: 'f' },
    text: { format: { type: 'json_schema', schema } },
  },
};

/** A value with each of its parts replaced by each of some odd values, or taken out. */
function* damaged(value: unknown): Generator<unknown> {
  for (const odd of [null, true, -7, 1.5, 'odd', '', [], {}, ['odd'], { odd: 1 }]) yield odd;
  const parts = typeof value === 'object' && value !== null ? Object.entries(value) : [];
  for (const [key, part] of parts) {
    const others = parts.filter(([name]) => name !== key);
    if (!Array.isArray(value)) yield Object.fromEntries(others);
    for (const odd of damaged(part))
      yield Array.isArray(value)
        ? value.map((each, i) => (String(i) === key ? odd : each))
        : Object.fromEntries([...others, [key, odd]]);
  }
}

describe('a wrong request', () => {
  const dialects = { chat: chatDialect, messages: messagesDialect, responses: responsesDialect };
  it.each(Object.keys(bodies) as (keyof typeof bodies)[])('of %s is refused in the words of its fields', (name) => {
    const body: unknown = bodies[name];
    expect(dialects[name].read(body)).toMatchObject({ model: 'm' });
    const texts = new Set<string>();
    for (const each of damaged(body))
      try {
        dialects[name].read(each);
      } catch (error) {
        expect(error).toBeInstanceOf(DialectError);
        texts.add((error as Error).message);
      }
    expect([...texts].filter((text) => /Invalid|Too |Unrecognized|undefined|received/.test(text))).toEqual([]);
    expect(texts.size).toBeGreaterThan(50);
  });
});
