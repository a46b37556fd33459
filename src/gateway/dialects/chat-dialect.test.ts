import { OpenAI } from 'openai';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { dialectContract } from '../../../test/contracts/dialect.js';
import { chatDialect } from './chat-dialect.js';
import type { ModelAnswer } from './dialect.js';
import { modelApp } from './model-app.js';

const plain = { model: 'solver', messages: [{ role: 'user', content: 'Hi' }] };
const withMessage = (message: object) => ({ ...plain, messages: [message] });
const calls = [
  { id: 'call_1_0', type: 'function', function: { name: 'look', arguments: '{"at":"a"}' } },
  { id: 'call_1_1', type: 'function', function: { name: 'look', arguments: '{"at":"b"}' } },
];
const lookTool = {
  type: 'function',
  function: {
    name: 'look',
    description: 'Looks.',
    parameters: { type: 'object', properties: { at: { type: 'string' } }, required: ['at'] },
    strict: true,
  },
};

const toolCall = z.object({
  id: z.string(),
  type: z.literal('function'),
  function: z.object({ name: z.string(), arguments: z.string() }),
});
const usage = z.object({
  prompt_tokens: z.int(),
  completion_tokens: z.int(),
  total_tokens: z.int(),
  prompt_tokens_details: z.object({ cached_tokens: z.int() }),
  completion_tokens_details: z.object({ reasoning_tokens: z.int() }),
});
const completion = z.object({
  id: z.string(),
  object: z.literal('chat.completion'),
  created: z.int(),
  model: z.literal('solver'),
  choices: z.tuple([
    z.object({
      index: z.literal(0),
      finish_reason: z.string(),
      message: z.object({
        role: z.literal('assistant'),
        content: z.string().nullable(),
        reasoning_content: z.string().optional(),
        tool_calls: z.array(toolCall).optional(),
      }),
    }),
  ]),
  usage,
});
const chunk = z.object({
  id: z.string(),
  object: z.literal('chat.completion.chunk'),
  created: z.int(),
  model: z.literal('solver'),
  choices: z.array(
    z.object({
      index: z.literal(0),
      finish_reason: z.string().nullable(),
      delta: z.object({
        content: z.string().optional(),
        reasoning_content: z.string().optional(),
        tool_calls: z.array(toolCall.extend({ index: z.int() })).optional(),
      }),
    }),
  ),
  usage: usage.optional(),
});
const error = z.object({
  error: z.object({ message: z.string(), type: z.string().min(1), code: z.string(), param: z.string().nullable() }),
});

const callsOf = (calls: readonly z.infer<typeof toolCall>[] = []) =>
  calls.map(({ id, function: { name, arguments: text } }) => ({ id, name, arguments: text }));
const countsOf = (counts?: z.infer<typeof usage>) =>
  [counts?.prompt_tokens ?? -1, counts?.completion_tokens ?? -1] as const;

dialectContract('chat completions', {
  route: '/v1/chat/completions',
  plain,
  conversation: {
    model: 'solver',
    messages: [
      {
        role: 'developer',
        content: [
          { type: 'text', text: 'Be ' },
          { type: 'text', text: 'brief.', cache: true },
        ],
      },
      { role: 'user', content: 'What is in a and b?', metadata: null },
      {
        role: 'assistant',
        content: [{ type: 'text', text: 'I look.', role: 'assistant', refusal: null, tool_calls: calls }],
        tool_calls: calls,
        reasoning_content: 'Hm.',
        audio: null,
      },
      { role: 'tool', tool_call_id: 'call_1_0', content: [{ type: 'text', text: 'seven' }] },
      { role: 'tool', tool_call_id: 'call_1_1', content: 'eight' },
      { role: 'user', content: [{ type: 'text', text: 'And together?' }] },
    ],
    tools: [lookTool],
    tool_choice: { type: 'function', function: { name: 'look' } },
    parallel_tool_calls: true,
    temperature: 0.5,
    top_p: 0.9,
    n: 1,
    logit_bias: {},
    store: false,
    user: 'me',
    metadata: { a: 'b' },
    max_tokens: 8,
    max_completion_tokens: 64_000,
    stream: false,
    stream_options: null,
    response_format: null,
  },
  refused: [
    ['no model', { messages: plain.messages }, /^model: /],
    ['no messages', { ...plain, messages: [] }, /^messages: /],
    ['an unknown role', withMessage({ role: 'robot', content: 'Hi' }), /messages\.0\.role/],
    ['no content', withMessage({ role: 'user' }), /messages\.0\.content: expected a text/],
    [
      'an image',
      withMessage({ role: 'user', content: [{ type: 'image_url', image_url: { url: 'x' } }] }),
      /messages\.0\.content: .*'image_url'.* only text/,
    ],
    ['a type that objects have', withMessage({ role: 'user', content: [{ type: 'constructor' }] }), /'constructor'/],
    ['no answers', { ...plain, n: 0 }, /^n: /],
    ['several answers in a stream', { ...plain, n: 2, stream: true }, /n: a stream has one answer/],
    ['a bias', { ...plain, logit_bias: { 5: 1 } }, /logit_bias/],
    ['older functions', { ...plain, functions: [{ name: 'look' }] }, /send tools/],
    ['a tool without a type', { ...plain, tools: [{ type: 'web_search' }, {}] }, /tools\.1\.type: expected a function/],
    ['two tools of one name', { ...plain, tools: [lookTool, lookTool] }, /the same name/],
    ['a choice without tools', { ...plain, tools: [], tool_choice: 'required' }, /no tools/],
    [
      'a choice of none',
      { ...plain, tools: [lookTool], tool_choice: { type: 'function', function: { name: 'x' } } },
      /'x'/,
    ],
    ['no tokens', { ...plain, max_tokens: 0 }, /max_tokens/],
    ['no number', { ...plain, temperature: 'hot' }, /temperature/],
    ['a result of no call', withMessage({ role: 'tool', content: 'x' }), /tool_call_id/],
  ],
  finish: { stop: 'stop', length: 'length', tool_calls: 'tool_calls' },
  readBody(body) {
    const { choices, usage } = completion.parse(body);
    const [{ finish_reason: finish, message }] = choices;
    if (message.content === null && message.tool_calls === undefined) throw new Error('null stands beside calls alone');
    const { content, reasoning_content: reasoning = '', tool_calls } = message;
    return { text: content ?? '', reasoning, calls: callsOf(tool_calls), finish, tokens: countsOf(usage) };
  },
  readStream(events) {
    expect(events.at(-1)?.data).toBe('[DONE]');
    const chunks = events.slice(0, -1).map(({ data }) => chunk.parse(data));
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
    const deltas = chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta));
    const called = deltas.flatMap(({ tool_calls = [] }) => tool_calls);
    expect(called.map(({ index }) => index)).toEqual(called.map((_, i) => i));
    return {
      text: deltas.map(({ content = '' }) => content).join(''),
      reasoning: deltas.map(({ reasoning_content = '' }) => reasoning_content).join(''),
      calls: callsOf(called),
      finish: chunks.flatMap(({ choices }) => choices.map(({ finish_reason: reason }) => reason ?? '')).join(''),
      tokens: countsOf(chunks.find(({ usage }) => usage !== undefined)?.usage),
    };
  },
  readError: (body) => error.parse(body).error.message,
});

describe('chat completions', () => {
  const answer: ModelAnswer = {
    id: 'c0ffee',
    model: 'solver',
    content: 'ab',
    toolCalls: [],
    finishReason: 'stop',
    usage: { promptTokens: 2, responseTokens: 3 },
    tokens: { prompt: [4, 5], response: [6, 7, 0], logprobs: [-1, -0.5, -0.25] },
  };
  const app = modelApp({
    authorise: () => 'me',
    models: () => ['solver', 'judge'],
    complete: async () => answer,
    countTokens: () => 5,
  });
  const client = new OpenAI({
    baseURL: 'http://drmas/v1',
    apiKey: 'any',
    maxRetries: 0,
    fetch: async (url, init) => app.request(String(url), init),
  });
  const ask = { model: 'solver', messages: [{ role: 'user', content: 'Hi' }] } as const;

  it("are readable by OpenAI's client", async () => {
    expect((await client.models.list()).data.map(({ id }) => id)).toEqual(['solver', 'judge']);
    const whole = await client.chat.completions.create({ ...ask, messages: [...ask.messages] });
    expect(whole.choices[0]?.message.content).toBe('ab');
    const runner = client.chat.completions.stream({ ...ask, messages: [...ask.messages] });
    expect(await runner.finalContent()).toBe('ab');
    const wrong = client.chat.completions.create({ ...ask, messages: [] });
    await expect(wrong).rejects.toMatchObject({ status: 400, code: 'invalid_request', type: 'invalid_request_error' });
  });

  it.each([
    ['messages[1].role', { messages: [ask.messages[0], { role: 'robot', content: 'Hi' }] }],
    ['tools[0].type', { tools: [{ function: { name: 'x' } }] }],
    ['tool_choice', { tool_choice: 'required' }],
    ['max_tokens', { max_tokens: 0 }],
    ['n', { n: 2 }],
    ['n', { n: 2, stream: true }],
    [null, []],
  ])('name the wrong field as OpenAI does: %s', async (param, change) => {
    const body = JSON.stringify(Array.isArray(change) ? change : { ...ask, ...change });
    const response = await app.request('/v1/chat/completions', { method: 'POST', body });
    expect([response.status, await response.json()]).toMatchObject([400, { error: { param } }]);
  });

  it('have token ids and log-probs in the shape of vLLM', async () => {
    const body = { ...ask, return_token_ids: true };
    const send = async (more: object) => {
      const response = await app.request('/v1/chat/completions', {
        method: 'POST',
        body: JSON.stringify({ ...body, ...more }),
      });
      return response.text();
    };
    const tokens = {
      token_ids: [6, 7, 0],
      logprobs: { content: [{ token: 'token_id:6', logprob: -1 }, { logprob: -0.5 }, { logprob: -0.25 }] },
    };
    const whole = JSON.parse(await send({}));
    expect(whole).toMatchObject({ prompt_token_ids: [4, 5], choices: [tokens] });
    const last = (await send({ stream: true })).split('\n\n').at(-3)?.slice('data: '.length) ?? '';
    expect(JSON.parse(last)).toMatchObject({ prompt_token_ids: [4, 5], choices: [tokens] });
  });

  it('end with counts only if the client requests them, since many read the first choice of every chunk', async () => {
    const send = async (body: object) => {
      const response = await app.request('/v1/chat/completions', { method: 'POST', body: JSON.stringify(body) });
      return response.text();
    };
    expect(await send({ ...ask, stream: true })).not.toContain('"choices":[]');
    expect(await send({ ...ask, stream: true, stream_options: { include_usage: true } })).toContain('"choices":[]');
  });

  it('may wish for one call at most, which is counted', () => {
    const wishing = (parallel_tool_calls: boolean | null) => chatDialect.read({ ...ask, parallel_tool_calls }).ignored;
    expect([wishing(false), wishing(true), wishing(null)]).toEqual([['parallel_tool_calls'], [], []]);
  });

  it('may not choose a tool in another form, and are told the forms', () => {
    const tool_choice = { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [] } };
    expect(() => chatDialect.read({ ...ask, tool_choice })).toThrow(
      /^tool_choice: expected 'auto', 'none', 'required' or/,
    );
  });

  it('may have any seed, also with several answers, which then have seeds of their own', async () => {
    const seeds: unknown[] = [];
    const recording = modelApp<undefined>({
      authorise: () => undefined,
      models: () => ['solver'],
      mostAnswers: 3,
      complete: async ({ model, sampling }) => {
        seeds.push(sampling.seed);
        return {
          ...{ id: 'a', model, content: '', toolCalls: [], finishReason: 'stop' },
          usage: { promptTokens: 1, responseTokens: 1 },
        };
      },
      countTokens: () => 1,
    });
    for (const seed of [7, -7, Number.MAX_SAFE_INTEGER - 1]) {
      seeds.length = 0;
      const body = JSON.stringify({ ...ask, seed, n: 3 });
      await recording.request('/v1/chat/completions', { method: 'POST', body });
      expect(new Set(seeds).size).toBe(3);
      expect(seeds[0]).toBe(seed);
      expect(seeds.every(Number.isSafeInteger)).toBe(true);
    }
  });

  it('may have calls that write no arguments where there are none', () => {
    const call = { id: 'a', type: 'function', function: { name: 'now', arguments: '' } };
    const { messages } = chatDialect.read({ ...ask, messages: [{ role: 'assistant', tool_calls: [call] }] });
    expect(messages[0]?.toolCalls).toEqual([{ id: 'a', name: 'now', arguments: '{}' }]);
  });

  it.each([
    [{ type: 'text' }, undefined],
    [{ type: 'json_object' }, { type: 'object' }],
    [{ type: 'json_schema', json_schema: { name: 'x', schema: { type: 'array' } } }, { type: 'array' }],
  ])('wish for a format %j', (response_format, schema) => {
    expect(chatDialect.read({ ...ask, response_format }).responseSchema).toEqual(schema);
  });
});
