/** No field of a published request type is dropped in silence. */
import type OpenAI from 'openai';
import { describe, expect, it } from 'vitest';
import { chatDialect } from './chat-dialect.js';
import type { Dialect, ModelRequest } from './dialect.js';
import { messagesDialect } from './messages-dialect.js';
import { responsesDialect } from './responses-dialect.js';

type ChatField = keyof OpenAI.Chat.Completions.ChatCompletionCreateParamsNonStreaming;
type ResponsesField = keyof OpenAI.Responses.ResponseCreateParamsNonStreaming;

/** Of fields of OpenAI, the type check wants a row for each field of the installed package. */
const shared = {
  metadata: { a: 'b' },
  ...{ moderation: {}, parallel_tool_calls: false, prompt_cache_key: 'k', prompt_cache_options: {} },
  ...{ prompt_cache_retention: '24h', safety_identifier: 'me', service_tier: 'flex', store: true, stream: true },
  ...{ stream_options: { include_usage: true }, temperature: 0.5, top_logprobs: 2, top_p: 0.5, user: 'me' },
};
const chat: Record<ChatField, unknown> = {
  ...shared,
  model: 'judge',
  messages: [{ role: 'user', content: 'Else' }],
  ...{ audio: { voice: 'a' }, frequency_penalty: 1, function_call: { name: 'x' }, functions: [{ name: 'x' }] },
  ...{ logit_bias: { 1: 1 }, logprobs: true, max_completion_tokens: 5, max_tokens: 5, modalities: ['audio'], n: 2 },
  ...{ prediction: { type: 'content', content: 'a' }, presence_penalty: 1, reasoning_effort: 'low' },
  ...{ response_format: { type: 'json_object' }, seed: 3, stop: ['a'], tool_choice: 'required', tools: [] },
  ...{ verbosity: 'low', web_search_options: {} },
};
/** Fields of vLLM and other servers. */
const extensions = {
  ...{
    top_k: 5,
    min_p: 0.1,
    repetition_penalty: 1.1,
    best_of: 2,
    stop_token_ids: [1],
    min_tokens: 5,
    ignore_eos: true,
  },
  ...{ echo: true, return_token_ids: true, guided_json: {}, chat_template_kwargs: { enable_thinking: false } },
};
const responses: Record<ResponsesField, unknown> = {
  ...shared,
  model: 'judge',
  input: 'Else',
  ...{ background: true, context_management: [{}], conversation: 'c', include: ['a'], instructions: 'Be brief.' },
  ...{ max_output_tokens: 5, previous_response_id: 'r', prompt: { id: 'p' }, reasoning: { effort: 'low' } },
  ...{
    text: { format: { type: 'json_object' } },
    tool_choice: 'required',
    tools: [],
    truncation: 'auto',
    max_tool_calls: 2,
  },
};
/** As Anthropic documents them. */
const messages = {
  model: 'judge',
  messages: [{ role: 'user', content: 'Else' }],
  ...{
    max_tokens: 5,
    cache_control: {},
    container: 'c',
    context_management: {},
    inference_geo: 'eu',
    mcp_servers: [{}],
  },
  ...{
    metadata: { user_id: 'me' },
    output_config: { effort: 'low' },
    output_format: { type: 'json_schema', schema: {} },
  },
  ...{
    service_tier: 'auto',
    speed: 'fast',
    stop_sequences: ['a'],
    stream: true,
    system: 'Be brief.',
    temperature: 0.5,
  },
  ...{ thinking: { type: 'enabled' }, tool_choice: { type: 'any' }, tools: [], top_k: 5, top_p: 0.5 },
};

/** Fields that only label a request. A list of tools without a tool is as good as none. */
const WITHOUT_EFFECT = new Set([
  ...['metadata', 'user', 'store', 'safety_identifier', 'prompt_cache_key', 'prompt_cache_options'],
  ...['prompt_cache_retention', 'cache_control', 'tools'],
]);

const ask = { model: 'solver', messages: [{ role: 'user', content: 'Hi' }] };
const cases: readonly [string, Dialect, object, Readonly<Record<string, unknown>>][] = [
  ['chat completions', chatDialect, ask, { ...chat, ...extensions }],
  ['responses', responsesDialect, { model: 'solver', input: 'Hi' }, { ...responses, ...extensions }],
  ['messages', messagesDialect, { ...ask, max_tokens: 9 }, messages],
];

const withoutIgnored = ({ ignored: _, repeated: __, ...request }: ModelRequest) => request;
function readOrRefused(dialect: Dialect, body: object): ModelRequest | string {
  try {
    return dialect.read(body);
  } catch (error) {
    return (error as Error).message;
  }
}

describe.each(cases)('a field of %s', (_, dialect, plain, fields) => {
  const before = dialect.read(plain);

  it.each(Object.entries(fields))('%s is read, refused by name, named as ignored, or only a label', (name, value) => {
    const request = readOrRefused(dialect, { ...plain, [name]: value });
    if (typeof request === 'string') return expect(request).toContain(name === 'mcp_servers' ? 'mcp' : name);
    const isRead = JSON.stringify(withoutIgnored(request)) !== JSON.stringify(withoutIgnored(before));
    // The effort of `output_config`, and `stream_options` beside no counts.
    const named = request.ignored.length > before.ignored.length;
    const harmless = WITHOUT_EFFECT.has(name) || (name === 'stream_options' && dialect === responsesDialect);
    expect({ name, accounted: isRead || named, harmless }).toEqual({ name, accounted: !harmless, harmless });
  });

  it('of which drmas knows nothing is named as ignored, unless it is null', () => {
    expect(dialect.read({ ...plain, sparkle: 1, glitter: null }).ignored).toEqual(['sparkle']);
    const odd = dialect.read({ ...plain, 'a\u202eb': 1, ['x'.repeat(100)]: 1, ['__proto__']: 1 }).ignored;
    expect(new Set(odd)).toEqual(new Set(['a field of an odd name', '__proto__']));
    const many = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`f${i}`, i]));
    expect(dialect.read({ ...plain, ...many }).ignored).toHaveLength(32);
  });
});

/** A tool of each dialect with these fields. */
const withFields: Readonly<Record<string, (fields: object) => object>> = {
  'chat completions': (fields) => ({ type: 'function', function: { name: 'look', ...fields } }),
  responses: (fields) => ({ type: 'function', name: 'look', ...fields }),
  messages: (fields) => ({ name: 'look', input_schema: { type: 'object' }, ...fields }),
};

it.each(cases)('tools of %s keep what servers of frozen agents read', (name, dialect, plain) => {
  const strictOf = (strict: unknown) =>
    dialect.read({ ...plain, tools: [withFields[name]?.({ strict })] }).tools?.[0]?.strict;
  expect([true, false, null, undefined].map(strictOf)).toEqual([true, false, undefined, undefined]);
});

/** Tools as Codex, Claude Code and others send them beside functions. */
const others = ['web_search', 'image_generation', 'namespace', 'local_shell', 'bash_20250124', 'a\u202eb'];
it.each(cases)('tools of %s that are no functions are left out and named', (name, dialect, plain) => {
  const tools = others.map((type) => ({ type, name: type }));
  const request = dialect.read({ ...plain, tools: [...tools, ...tools, withFields[name]?.({})] });
  expect(request.tools?.map((tool) => tool.name)).toEqual(['look']);
  const names = [...others.slice(0, -1), 'an odd name'];
  expect(request.ignored).toEqual(names.map((type) => `tools of type ${type}`));
  expect(dialect.read({ ...plain, tools }).tools).toBeUndefined();
  expect(() => dialect.read({ ...plain, tools: [...tools, null] })).toThrow(`tools.${tools.length}`);
});

describe('numbers of a request', () => {
  const sampled = (more: object) => chatDialect.read({ ...ask, ...more }).sampling;

  it('may be seeds of 64 bits, which stay whole numbers', () => {
    expect(sampled({ seed: 3 })).toEqual({ seed: 3 });
    for (const seed of [2 ** 63, -(2 ** 63), 2 ** 53]) expect(Number.isSafeInteger(sampled({ seed }).seed)).toBe(true);
    for (const seed of [1.5, 2 ** 65]) expect(() => sampled({ seed })).toThrow(/^seed: expected an integer of 64 bits/);
  });

  it('have -1 and 0 for all tokens in top_k', () => {
    expect([sampled({ top_k: -1 }), sampled({ top_k: 0 }), sampled({ top_k: 5 })]).toEqual([
      { topK: 0 },
      { topK: 0 },
      { topK: 5 },
    ]);
    expect(() => sampled({ top_k: -2 })).toThrow(/^top_k: /);
    expect(() => sampled({ top_k: 0.5 })).toThrow(/^top_k: /);
  });

  it.each([
    ['max_tokens', chatDialect, ask],
    ['max_completion_tokens', chatDialect, ask],
    ['max_output_tokens', responsesDialect, { model: 'm', input: 'a' }],
  ] as const)('have -1 for no limit in %s', (field, dialect, plain) => {
    const limit = (value: unknown) => dialect.read({ ...plain, [field]: value }).maxTokens;
    expect([limit(-1), limit(null), limit(7)]).toEqual([undefined, undefined, 7]);
    for (const value of [0, -2, 1.5, '7']) expect(() => limit(value)).toThrow(new RegExp(`^${field}: `));
  });
});

describe('parts of a conversation', () => {
  const chatOf = (message: object) => readOrRefused(chatDialect, { ...ask, messages: [message] });
  const messagesWith = (content: object[], role = 'user') =>
    readOrRefused(messagesDialect, { ...ask, max_tokens: 9, messages: [{ role, content }] });

  it('have no calls in the older form', () => {
    const function_call = { name: 'look', arguments: '{}' };
    expect(chatOf({ role: 'assistant', content: null, function_call })).toContain('messages.0.function_call');
    expect(chatOf({ role: 'assistant', content: 'a', function_call: null })).toMatchObject({
      messages: [{ content: 'a' }],
    });
    expect(chatOf({ role: 'function', name: 'look', content: 'a' })).toContain('messages.0.role');
  });

  it('have calls without arguments as clients leave them out, and a schema beside json_object', () => {
    for (const empty of [{}, { arguments: null }, { arguments: '' }]) {
      const toolCalls = [{ id: 'a', name: 'look', arguments: '{}' }];
      const tool_calls = [{ id: 'a', type: 'function', function: { name: 'look', ...empty } }];
      expect(chatOf({ role: 'assistant', content: null, tool_calls })).toMatchObject({ messages: [{ toolCalls }] });
      const input = [{ type: 'function_call', call_id: 'a', name: 'look', ...empty }];
      expect(readOrRefused(responsesDialect, { model: 'solver', input })).toMatchObject({ messages: [{ toolCalls }] });
    }
    const schema = { type: 'object', required: ['a'] };
    const formatted = (more: object) =>
      readOrRefused(chatDialect, { ...ask, response_format: { type: 'json_object', ...more } });
    expect(formatted({ schema })).toMatchObject({ responseSchema: schema });
    expect(formatted({})).toMatchObject({ responseSchema: { type: 'object' } });
  });

  it('have the refusals of earlier answers, and no audio', () => {
    expect(chatOf({ role: 'assistant', content: null, refusal: 'No.' })).toMatchObject({
      messages: [{ content: 'No.' }],
    });
    expect(chatOf({ role: 'assistant', content: 'a', refusal: null, audio: null })).toMatchObject({
      messages: [{ content: 'a' }],
    });
    expect(chatOf({ role: 'assistant', audio: { id: 'a' } })).toContain(
      'messages.0.audio: these models read only text',
    );
  });

  it('of messages name the flag of a failed call as ignored', () => {
    const result = { type: 'tool_result', tool_use_id: 'a', content: 'no' };
    expect(messagesWith([{ ...result, is_error: true }])).toMatchObject({ ignored: ['is_error'] });
    expect(messagesWith([{ ...result, is_error: false }])).toMatchObject({ ignored: [] });
  });

  it('of messages do not end with the beginning of an answer', () => {
    expect(messagesWith([{ type: 'text', text: '{' }], 'assistant')).toMatch(
      /^messages: the last one is the assistant's/,
    );
  });
});
