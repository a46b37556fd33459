import { OpenAI } from 'openai';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { dialectContract } from '../../../test/contracts/dialect.js';
import type { ModelAnswer, ModelDelta } from './dialect.js';
import { modelApp } from './model-app.js';
import { responsesDialect } from './responses-dialect.js';

const plain = { model: 'solver', input: 'Hi' };
const withItem = (item: unknown) => ({ ...plain, input: [item] });
const lookTool = {
  type: 'function',
  name: 'look',
  description: 'Looks.',
  parameters: { type: 'object', properties: { at: { type: 'string' } }, required: ['at'] },
  strict: null,
};

const item = z.discriminatedUnion('type', [
  z.object({ type: z.literal('reasoning'), id: z.string(), content: z.array(z.object({ text: z.string() })) }),
  z.object({
    type: z.literal('message'),
    id: z.string(),
    role: z.literal('assistant'),
    content: z.array(z.object({ type: z.literal('output_text'), text: z.string(), annotations: z.array(z.never()) })),
  }),
  z.object({
    type: z.literal('function_call'),
    id: z.string(),
    call_id: z.string(),
    name: z.string(),
    arguments: z.string(),
  }),
]);
const response = z.object({
  id: z.string(),
  object: z.literal('response'),
  created_at: z.int(),
  model: z.literal('solver'),
  status: z.enum(['completed', 'incomplete']),
  output: z.array(item),
  usage: z.object({
    input_tokens: z.int(),
    output_tokens: z.int(),
    input_tokens_details: z.object({ cached_tokens: z.int() }),
    output_tokens_details: z.object({ reasoning_tokens: z.int() }),
  }),
});
const error = z.object({ error: z.object({ message: z.string(), type: z.string().min(1), code: z.string() }) });

function viewOf(body: unknown) {
  const { output, status, usage } = response.parse(body);
  const texts = (type: 'message' | 'reasoning') =>
    output.flatMap((each) => (each.type === type ? each.content.map(({ text }) => text) : [])).join('');
  const calls = output.flatMap((each) =>
    each.type === 'function_call' ? [{ id: each.call_id, name: each.name, arguments: each.arguments }] : [],
  );
  return {
    text: texts('message'),
    reasoning: texts('reasoning'),
    calls,
    finish: status === 'completed' && calls.length > 0 ? 'called' : status,
    tokens: [usage.input_tokens, usage.output_tokens] as const,
  };
}

dialectContract('responses', {
  route: '/v1/responses',
  plain,
  conversation: {
    model: 'solver',
    instructions: 'Be brief.',
    input: [
      { role: 'user', content: 'What is in a and b?' },
      { type: 'reasoning', id: 'rs_1', summary: [], content: [{ type: 'reasoning_text', text: 'Hm.' }] },
      { type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'I look.' }] },
      {
        type: 'function_call',
        id: 'fc_1',
        call_id: 'call_1_0',
        name: 'look',
        arguments: '{"at":"a"}',
        status: 'completed',
      },
      { type: 'function_call', call_id: 'call_1_1', name: 'look', arguments: '{"at":"b"}' },
      { type: 'function_call_output', call_id: 'call_1_0', output: 'seven' },
      { type: 'function_call_output', call_id: 'call_1_1', output: [{ type: 'input_text', text: 'eight' }] },
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'And together?' }] },
    ],
    tools: [lookTool],
    tool_choice: { type: 'function', name: 'look' },
    ...{
      temperature: 0.5,
      top_p: 0.9,
      store: true,
      include: ['reasoning.encrypted_content'],
      previous_response_id: null,
    },
    ...{
      max_output_tokens: 64_000,
      parallel_tool_calls: true,
      reasoning: {},
      text: { verbosity: 'low' },
      stream: null,
    },
  },
  refused: [
    ['no input', { model: 'solver' }, /^input: /],
    ['an empty input', { ...plain, input: [] }, /^input: /],
    ['a request that needs a memory', { ...plain, previous_response_id: 'c0ffee' }, /nothing is kept/],
    ['a conversation elsewhere', { ...plain, conversation: 'conv_1' }, /nothing is kept/],
    ['a reference', withItem({ type: 'item_reference', id: 'msg_1' }), /store: false/],
    ['work in the background', { ...plain, background: true }, /background/],
    ['a tool without a type', { ...plain, tools: [{ type: 'web_search' }, {}] }, /tools\.1\.type: expected a function/],
    ['an item of another kind', withItem({ type: 'computer_call' }), /^input\.0/],
    ['no item', withItem(5), /^input\.0/],
    [
      'an image',
      withItem({ role: 'user', content: [{ type: 'input_image', image_url: 'x' }] }),
      /input\.0\.content: .*only text/,
    ],
    ['no tokens', { ...plain, max_output_tokens: 0 }, /max_output_tokens/],
  ],
  finish: { stop: 'completed', length: 'incomplete', tool_calls: 'called' },
  readBody: viewOf,
  readStream(events) {
    const data = events.map((each) => each.data as Record<string, unknown> & { type: string });
    expect(data.map(({ sequence_number }) => sequence_number)).toEqual(data.map((_, i) => i));
    expect(events.map(({ event }) => event)).toEqual(data.map(({ type }) => type));
    expect(data.slice(0, 2).map(({ type }) => type)).toEqual(['response.created', 'response.in_progress']);
    const last = viewOf(data.at(-1)?.response);
    const joined = (type: string) =>
      data.flatMap((each) => (each.type === `response.${type}.delta` ? [each.delta] : [])).join('');
    expect(joined('output_text')).toBe(last.text);
    expect(joined('reasoning_text')).toBe(last.reasoning);
    expect(joined('function_call_arguments')).toBe(last.calls.map((call) => call.arguments).join(''));
    const done = data.filter(({ type }) => type === 'response.output_item.done');
    expect(done.map(({ item }) => item)).toEqual(z.object({ output: z.unknown() }).parse(data.at(-1)?.response).output);
    expect(done.map(({ output_index }) => output_index)).toEqual(done.map((_, i) => i));
    return last;
  },
  readError: (body) => error.parse(body).error.message,
});

describe('responses', () => {
  const answer: ModelAnswer = {
    id: 'c0ffee',
    model: 'solver',
    content: 'ab',
    reasoning: 'Hm.',
    finishReason: 'tool_calls',
    toolCalls: [{ id: 'call_c0ffee_0', name: 'look', arguments: '{}' }],
    usage: { promptTokens: 2, responseTokens: 3 },
  };

  it("are readable by OpenAI's client", async () => {
    const app = modelApp({
      authorise: () => 'me',
      models: () => ['solver'],
      complete: async () => answer,
      countTokens: () => 5,
    });
    const fetch = async (url: unknown, init?: RequestInit) => app.request(String(url), init);
    const client = new OpenAI({ baseURL: 'http://drmas/v1', apiKey: 'any', maxRetries: 0, fetch });
    const whole = await client.responses.create(plain);
    expect(whole.output_text).toBe('ab');
    const streamed = await client.responses.stream(plain).finalResponse();
    expect(streamed.output_text).toBe('ab');
    expect(streamed.output.map(({ type }) => type)).toEqual(['reasoning', 'message', 'function_call']);
  });

  it('end with an event of an error, numbered like the others, if the answer fails', async () => {
    async function* failing(): AsyncGenerator<ModelDelta> {
      yield { type: 'begin', id: 'c0ffee', promptTokens: 2 };
      yield { type: 'text', text: 'a' };
      throw new Error('broken');
    }
    const app = modelApp({
      authorise: () => 'me',
      models: () => ['solver'],
      complete: () => failing(),
      countTokens: () => 5,
    });
    const fetch = async (url: unknown, init?: RequestInit) => app.request(String(url), init);
    const client = new OpenAI({ baseURL: 'http://drmas/v1', apiKey: 'any', maxRetries: 0, fetch });
    const sent = { method: 'POST', body: JSON.stringify({ ...plain, stream: true }) };
    const text = await (await app.request('/v1/responses', sent)).text();
    const events = [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data));
    expect(events.map((event) => event.sequence_number)).toEqual(events.map((_, i) => i));
    const fields = { message: 'broken', code: 'internal_error', param: null };
    const error = { ...fields, type: 'server_error' };
    expect(events.at(-1)).toEqual({ ...fields, type: 'error', error, sequence_number: events.length - 1 });
    await expect(client.responses.stream(plain).finalResponse()).rejects.toMatchObject(error);
  });

  it('name the turn that an answer was, when they come back', () => {
    const { id, content, ...rest } = {
      id: 'msg_c0ffee',
      content: [{ type: 'output_text', text: 'ab' }],
      role: 'assistant',
    };
    const { messages } = responsesDialect.read(withItem({ id, content, ...rest }));
    expect(responsesDialect.read(withItem({ id, content, ...rest, type: null })).messages).toEqual(messages);
    expect(messages).toEqual([{ role: 'assistant', content: 'ab', turnId: 'c0ffee' }]);
  });

  it('may name items of earlier answers instead of repeating them, if these are known', () => {
    const types = ['item_reference', null, undefined];
    const reference = (id: string, i = 0) => ({ type: types[i], id });
    const ids = ['rs_c0ffee', 'msg_c0ffee', 'fc_call_c0ffee_0'];
    const result = { type: 'function_call_output', call_id: 'call_c0ffee_0', output: 'x' };
    const body = { ...plain, input: [...ids.map(reference), result] };
    const { content, toolCalls } = answer;
    const { messages } = responsesDialect.read(body, (id) => (id === 'c0ffee' ? answer : undefined));
    expect(messages).toEqual([
      { role: 'assistant', content, turnId: 'c0ffee', toolCalls },
      { role: 'tool', content: 'x', toolCallId: 'call_c0ffee_0' },
    ]);
    for (const id of ['msg_tea', 'fc_call_c0ffee_1', 'fc_call_tea_0', 'fc_c0ffee', 'c0ffee'])
      expect(() =>
        responsesDialect.read({ ...plain, input: [reference(id)] }, (each) => (each === 'c0ffee' ? answer : undefined)),
      ).toThrow(/^input\.0: nothing is kept between requests/);
  });

  it('find the calls of earlier answers by id, however many they name', () => {
    const size = 1000;
    let looks = 0;
    const toolCalls = Array.from({ length: size }, (_, i) => ({
      ...{ name: 'look', arguments: '{}' },
      get id() {
        looks++;
        return `call_c0ffee_${i}`;
      },
    }));
    const input = toolCalls.map((_, i) => ({ type: 'item_reference', id: `fc_call_c0ffee_${i}` }));
    const { messages } = responsesDialect.read({ ...plain, input }, () => {
      looks++;
      return { ...answer, toolCalls };
    });
    expect(messages.map((message) => message.toolCalls?.length)).toEqual([size]);
    expect(looks).toBeLessThan(3 * size);
  });

  it('repeat the instructions and the metadata of their requests', async () => {
    const labels = { instructions: 'Be brief.', metadata: { user: 'me' } };
    const answered = (fields: object) => responsesDialect.write(responsesDialect.read({ ...plain, ...fields }), answer);
    expect(answered(labels)).toMatchObject(labels);
    for (const metadata of [undefined, null, 5])
      expect(answered({ metadata })).toMatchObject({ instructions: null, metadata: {} });
    const request = responsesDialect.read({ ...plain, ...labels });
    const deltas = (async function* () {
      yield { type: 'answer' as const, answer };
    })();
    const shown: unknown[] = [];
    for await (const { data } of responsesDialect.stream(request, deltas)) {
      const { response: whole } = JSON.parse(data);
      if (whole !== undefined) shown.push(whole);
    }
    expect(shown).toMatchObject([labels, labels, labels]);
  });

  it.each(['ab', ''])('say of a message that a limit cut off that it is incomplete: "%s"', async (content) => {
    const cut: ModelAnswer = { ...answer, content, toolCalls: [], finishReason: 'length' };
    const request = responsesDialect.read(plain);
    const message = { type: 'message', status: 'incomplete', content: [{ text: content }] };
    expect(responsesDialect.write(request, cut)).toMatchObject({ status: 'incomplete', output: [{}, message] });
    const deltas = (async function* () {
      yield { type: 'answer' as const, answer: cut };
    })();
    const done: unknown[] = [];
    for await (const { event, data } of responsesDialect.stream(request, deltas))
      if (event === 'response.output_item.done') done.push(JSON.parse(data).item);
    expect(done).toMatchObject([{ type: 'reasoning' }, message]);
  });

  it('keep calls apart that lie behind a result', () => {
    const call = (id: string) => ({ type: 'function_call', call_id: id, name: 'look', arguments: '{}' });
    const result = { type: 'function_call_output', call_id: 'a', output: 'x' };
    const { messages } = responsesDialect.read({ ...plain, input: [call('a'), result, call('b'), call('c')] });
    expect(messages.map(({ role, toolCalls = [] }) => [role, ...toolCalls.map(({ id }) => id)])).toEqual([
      ['assistant', 'a'],
      ['tool'],
      ['assistant', 'b', 'c'],
    ]);
  });

  it('keep all thoughts before a message and between calls', () => {
    const thought = (text: string) => ({ type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text }] });
    const call = (id: string) => ({ type: 'function_call', call_id: id, name: 'look', arguments: '{}' });
    const said = { role: 'assistant', content: 'I look.' };
    const read = (input: unknown[]) =>
      responsesDialect.read({ ...plain, input }).messages.map(({ reasoning, toolCalls = [] }) => {
        return [reasoning, ...toolCalls.map(({ id }) => id)];
      });
    const hidden = { type: 'reasoning', encrypted_content: 'x' };
    expect(read([thought('A'), thought('B'), hidden, said])).toEqual([['AB']]);
    expect(read([thought('A'), said, thought('B'), call('a'), thought('C'), call('b')])).toEqual([['ABC', 'a', 'b']]);
    expect(read([thought('A'), { role: 'user', content: 'No' }, said])).toEqual([[undefined], [undefined]]);
  });

  it('may wish for one call at most, which is counted', () => {
    const wishing = (parallel_tool_calls: boolean | null) =>
      responsesDialect.read({ ...plain, parallel_tool_calls }).ignored;
    expect([wishing(false), wishing(true), wishing(null)]).toEqual([['parallel_tool_calls'], [], []]);
  });

  it('may have calls that write no arguments where there are none', () => {
    const call = { type: 'function_call', call_id: 'a', name: 'now', arguments: '' };
    const { messages } = responsesDialect.read({ ...plain, input: [call] });
    expect(messages[0]?.toolCalls).toEqual([{ id: 'a', name: 'now', arguments: '{}' }]);
  });

  it.each([
    [{ type: 'text' }, undefined],
    [{ type: 'json_object' }, { type: 'object' }],
    [{ type: 'json_schema', name: 'x', schema: { type: 'array' } }, { type: 'array' }],
  ])('wish for a format %j', (format, schema) => {
    expect(responsesDialect.read({ ...plain, text: { format } }).responseSchema).toEqual(schema);
  });
});
