import { exactJson } from '@drmas/engine/errors';
import { parsedBody } from '@drmas/engine/requests';
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { dialectContract } from '../../../test/contracts/dialect.js';
import { messagesDialect } from './messages-dialect.js';
import { modelApp } from './model-app.js';

const plain = { model: 'solver', max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }] };
const withBlock = (block: unknown, role = 'user') => ({ ...plain, messages: [{ role, content: [block] }] });
const lookTool = {
  name: 'look',
  description: 'Looks.',
  input_schema: { type: 'object', properties: { at: { type: 'string' } }, required: ['at'] },
  cache_control: { type: 'ephemeral' },
};

const usage = z.object({
  input_tokens: z.int(),
  output_tokens: z.int(),
  cache_read_input_tokens: z.int(),
  cache_creation_input_tokens: z.int(),
});
const block = z.discriminatedUnion('type', [
  z.object({ type: z.literal('thinking'), thinking: z.string(), signature: z.string() }),
  z.object({ type: z.literal('text'), text: z.string() }),
  z.object({ type: z.literal('tool_use'), id: z.string(), name: z.string(), input: z.record(z.string(), z.unknown()) }),
]);
const message = z.object({
  id: z.string(),
  type: z.literal('message'),
  role: z.literal('assistant'),
  model: z.literal('solver'),
  content: z.array(block),
  stop_reason: z.string().nullable(),
  stop_sequence: z.string().nullable(),
  usage,
});
const error = z.object({ type: z.literal('error'), error: z.object({ type: z.string().min(1), message: z.string() }) });

function viewOf(body: unknown) {
  const { content, stop_reason, usage } = message.parse(body);
  return {
    text: content.map((each) => (each.type === 'text' ? each.text : '')).join(''),
    reasoning: content.map((each) => (each.type === 'thinking' ? each.thinking : '')).join(''),
    calls: content.flatMap((each) =>
      each.type === 'tool_use' ? [{ id: each.id, name: each.name, arguments: JSON.stringify(each.input) }] : [],
    ),
    finish: stop_reason ?? '',
    tokens: [usage.input_tokens, usage.output_tokens] as const,
  };
}

const streamEvent = z.discriminatedUnion('type', [
  z.object({ type: z.literal('message_start'), message }),
  z.object({ type: z.literal('content_block_start'), index: z.int(), content_block: block }),
  z.object({
    type: z.literal('content_block_delta'),
    index: z.int(),
    delta: z.discriminatedUnion('type', [
      z.object({ type: z.literal('text_delta'), text: z.string() }),
      z.object({ type: z.literal('thinking_delta'), thinking: z.string() }),
      z.object({ type: z.literal('signature_delta'), signature: z.string() }),
      z.object({ type: z.literal('input_json_delta'), partial_json: z.string() }),
    ]),
  }),
  z.object({ type: z.literal('content_block_stop'), index: z.int() }),
  z.object({
    type: z.literal('message_delta'),
    delta: z.object({ stop_reason: z.string(), stop_sequence: z.string().nullable() }),
    usage,
  }),
  z.object({ type: z.literal('message_stop') }),
]);

dialectContract('messages', {
  route: '/v1/messages',
  plain,
  conversation: {
    model: 'solver',
    system: [
      { type: 'text', text: 'Be ', cache_control: { type: 'ephemeral' } },
      { type: 'text', text: 'brief.' },
    ],
    messages: [
      { role: 'user', content: 'What is in a and b?' },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'Hm.', signature: 'x' },
          { type: 'text', text: 'I look.' },
          { type: 'tool_use', id: 'call_1_0', name: 'look', input: { at: 'a' }, caller: { type: 'direct' } },
          { type: 'tool_use', id: 'call_1_1', name: 'look', input: { at: 'b' } },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'call_1_0', content: 'seven' },
          { type: 'tool_result', tool_use_id: 'call_1_1', content: [{ type: 'text', text: 'eight' }], is_error: false },
          { type: 'text', text: 'And together?' },
        ],
      },
    ],
    tools: [lookTool],
    tool_choice: { type: 'tool', name: 'look', disable_parallel_tool_use: false },
    ...{
      max_tokens: 64_000,
      temperature: 0.5,
      top_p: 0.9,
      metadata: { user_id: 'me' },
      thinking: { type: 'disabled' },
    },
  },
  refused: [
    ['no length', { model: 'solver', messages: plain.messages }, /max_tokens/],
    ['no messages', { ...plain, messages: [] }, /^messages: /],
    ['an image', withBlock({ type: 'image', source: {} }), /messages\.0\.content\.0.*only text/],
    [
      'a call without arguments',
      withBlock({ type: 'tool_use', id: 'a', name: 'b', input: 'c' }, 'assistant'),
      /expected an object/,
    ],
    ['a tool without a schema', { ...plain, tools: [{ name: 'x' }] }, /tools\.0/],
    ['a choice of none', { ...plain, tools: [lookTool], tool_choice: { type: 'tool', name: 'x' } }, /'x'/],
    ['an unknown role', { ...plain, messages: [{ role: 'tool', content: 'x' }] }, /messages\.0\.role/],
  ],
  finish: { stop: 'end_turn', length: 'max_tokens', tool_calls: 'tool_use' },
  readBody: viewOf,
  readStream(events) {
    const data = events.map((each) => streamEvent.parse(each.data));
    expect(events.map(({ event }) => event)).toEqual(data.map(({ type }) => type));
    const content: (z.infer<typeof block> & { json?: string })[] = [];
    let [start, end]: [z.infer<typeof message> | undefined, Partial<z.infer<typeof message>>] = [undefined, {}];
    for (const each of data) {
      if (each.type === 'message_start') start = each.message;
      else if (each.type === 'content_block_start') {
        expect(each.index).toBe(content.length);
        content.push({ ...each.content_block });
      } else if (each.type === 'content_block_delta') {
        const last = content.at(-1);
        if (each.delta.type === 'text_delta' && last?.type === 'text') last.text += each.delta.text;
        else if (each.delta.type === 'thinking_delta' && last?.type === 'thinking')
          last.thinking += each.delta.thinking;
        else if (each.delta.type === 'input_json_delta' && last?.type === 'tool_use')
          last.input = JSON.parse(each.delta.partial_json);
        else expect(each.delta.type).toBe('signature_delta');
      } else if (each.type === 'message_delta') end = { stop_reason: each.delta.stop_reason, usage: each.usage };
    }
    expect(data.at(-1)?.type).toBe('message_stop');
    return viewOf({ ...start, ...end, content });
  },
  readError: (body) => error.parse(body).error.message,
});

describe('messages', () => {
  it('are counted without being answered', async () => {
    const complete = vi.fn<() => never>();
    const app = modelApp({
      authorise: () => 'me',
      models: () => [],
      complete,
      countTokens: ({ messages }) => messages.length,
    });
    const { max_tokens, ...counted } = { ...plain, system: 'Be brief.', tools: [lookTool] };
    const send = (body: unknown) =>
      app.request('/v1/messages/count_tokens', { method: 'POST', body: JSON.stringify(body) });
    expect(await (await send(counted)).json()).toEqual({ input_tokens: 2 });
    const refused = await send({ ...counted, messages: 'Hi' });
    expect(refused.status).toBe(400);
    expect(error.parse(await refused.json()).error.type).toBe('invalid_request_error');
    expect(complete).not.toHaveBeenCalled();
    expect(max_tokens).toBe(10);
  });

  it.each([
    [{ output_config: { format: { type: 'json_schema', schema: { type: 'array' } } } }, { type: 'array' }, []],
    [{ output_format: { type: 'json_schema', schema: { type: 'array' } } }, { type: 'array' }, []],
    [{ output_config: { effort: 'low', format: null } }, undefined, ['effort']],
  ])('wish for an output %j', (more, schema, ignored) => {
    const request = messagesDialect.read({ ...plain, ...more });
    expect(request.responseSchema).toEqual(schema);
    expect(request.ignored).toEqual(ignored);
  });

  it('may wish for one call at most, which is counted', () => {
    const wishing = (disable_parallel_tool_use: boolean) => {
      const choice = { tool_choice: { type: 'auto', disable_parallel_tool_use } };
      return messagesDialect.read({ ...plain, tools: [lookTool], ...choice }).ignored;
    };
    expect([wishing(true), wishing(false)]).toEqual([['disable_parallel_tool_use'], []]);
  });

  it('may carry results alone', () => {
    const result = { type: 'tool_result', tool_use_id: 'a' };
    expect(messagesDialect.read(withBlock(result)).messages).toEqual([{ role: 'tool', content: '', toolCallId: 'a' }]);
  });
});

describe('numbers of calls and schemas', () => {
  it('keep their digits, and keys their order', () => {
    const input = '{"id":2512292042121000001,"price":5.0,"10":1,"2":2}';
    const schema = '{"type":"object","properties":{"id":{"maximum":9007199254740993},"2":{},"1":{}}}';
    const body = `{"model": "m", "max_tokens": 9, "messages": [
      {"role": "user", "content": "?"},
      {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": ${input}}]},
      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "7"}]}
    ], "tools": [{"name": "f", "input_schema": ${schema}}]}`;
    const { messages, tools = [] } = messagesDialect.read(parsedBody(body), () => undefined);
    expect(messages.flatMap(({ toolCalls = [] }) => toolCalls)[0]?.arguments).toBe(input);
    expect(tools.map(({ parameters }) => exactJson(parameters))).toEqual([schema]);
  });

  it('keep their digits in an answer too', async () => {
    const input = '{"id":9007199254740993,"price":5.0}';
    const answer = {
      ...{ id: 'a', model: 'm', content: '', finishReason: 'tool_calls' as const },
      ...{ toolCalls: [{ id: 'c', name: 'f', arguments: input }], usage: { promptTokens: 1, responseTokens: 1 } },
    };
    const app = modelApp({
      authorise: () => 'me',
      models: () => [],
      complete: async () => answer as never,
      countTokens: () => 1,
    });
    const body = JSON.stringify({ ...plain, tools: [lookTool] });
    const response = await app.request('/v1/messages', { method: 'POST', body });
    expect(await response.text()).toContain(`"input":${input}`);
  });
});
