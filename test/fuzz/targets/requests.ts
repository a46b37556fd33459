/** The requests of clients to the gateway: bodies of every dialect, and the lines and headers before them. */

import { bytesTokenizer } from '@drmas/engine/tokens';
import type { EpisodeCalls } from '../../../src/gateway/agents/attribution.js';
import { Gateway } from '../../../src/gateway/agents/gateway/gateway.js';
import type { ModelAnswer } from '../../../src/gateway/dialects/dialect.js';
import type { Target } from '../target.js';

const { chat } = bytesTokenizer();

/** Answers every call with calls of all tools that it offers. */
const calls: EpisodeCalls = {
  agents: ['solver', 'verifier'],
  measure: (_, { messages, tools }) => chat(messages, undefined, tools).length,
  noteRefusal: () => {},
  recall: (id) => ({ id, content: 'seven', toolCalls: [{ id: `call_${id}_0`, name: 'look', arguments: '{}' }] }),
  complete: async (_, { model, messages, tools = [], wantsTokenIds }): Promise<ModelAnswer> => ({
    id: 'c0ffee',
    model,
    content: messages.at(-1)?.content ?? '',
    reasoning: 'Hm.',
    toolCalls: tools.map(({ name, parameters }, n) => {
      return { id: `call_c0ffee_${n}`, name, arguments: JSON.stringify(parameters) };
    }),
    finishReason: tools.length > 0 ? 'tool_calls' : 'stop',
    usage: { promptTokens: 1, responseTokens: 1 },
    ...(wantsTokenIds ? { tokens: { prompt: [1], response: [2], logprobs: [-1] } } : {}),
  }),
};

const episode = {
  name: 'fuzzed',
  signal: new AbortController().signal,
  turns: [],
  calls: 0,
  stray: () => {},
  noteRefusal: () => {},
};
const gateway = new Gateway({ limits: { maxCalls: Number.POSITIVE_INFINITY, maxTurns: 1 }, onIgnored: () => {} });
const { secret } = gateway.connect(episode, calls, 'http://127.0.0.1:1');

/** Complains about a reply that is neither the expected one nor an error of the dialect. */
async function answered(route: string, answer: Response): Promise<void> {
  const text = await answer.text();
  if (answer.status >= 500) throw new TypeError(`status ${answer.status}: ${text.slice(0, 500)}`);
  if (answer.headers.get('content-type')?.startsWith('text/event-stream')) {
    for (const line of text.split('\n')) if (/^data: [^[]/.test(line)) JSON.parse(line.slice('data: '.length));
    return;
  }
  const body = JSON.parse(text);
  if (answer.status === 200) return;
  const { type, message } = body.error;
  const shaped = !route.endsWith('/v1/messages') || body.type === 'error';
  if (typeof type !== 'string' || typeof message !== 'string' || !shaped) throw new TypeError(`no error: ${text}`);
  if (answer.headers.get('x-should-retry') !== 'false') throw new TypeError('clients would send it again');
}

const tool = {
  name: 'look',
  description: 'Looks.',
  parameters: { type: 'object', properties: { at: { type: 'string' } }, required: ['at'] },
};
const call = { id: 'call_1_0', type: 'function', function: { name: 'look', arguments: '{"at":"a"}' } };
const words = [
  ...['"role"', '"content"', '"tool"', '"assistant"', '"developer"', 'tool_calls', 'tool_call_id', 'image_url'],
  ...['tool_use', 'tool_result', 'function_call', 'function_call_output', 'item_reference', 'max_tokens', 'stream'],
  ...['null', 'true', '[]', '{}', '1e999', 'tool_choice', 'required', 'any', 'json_schema', 'solver', 'verifier', 'n'],
];

/** A target for bodies that are sent to a route. */
const bodies = (name: string, route: string, seeds: readonly object[]): Target => ({
  name,
  seeds: seeds.flatMap((seed) => [JSON.stringify(seed), JSON.stringify({ ...seed, stream: true })]),
  words,
  inputs: 33_000,
  run: async (input) => {
    const headers = { authorization: `Bearer ${secret}` };
    await answered(route, await gateway.app.request(route, { method: 'POST', headers, body: Uint8Array.from(input) }));
  },
});

const lines: Target = {
  name: 'request-lines',
  seeds: [
    `POST /v1/chat/completions\nauthorization: Bearer SECRET\nx-stainless-retry-count: 1\n\n`,
    `POST /e/0/a/solver/v1/messages\nx-api-key: SECRET\n\n`,
    `POST /v1/messages/count_tokens\nx-api-key: SECRET\ncontent-length: 5\n\n`,
    `GET /v1/models\nauthorization: Bearer SECRET\n\n`,
    'DELETE /e/%2e%2e/a/%00/v1/responses\ncontent-type: text/plain\n\n',
  ],
  words: [
    '/',
    '..',
    '%2F',
    '%',
    '%ff',
    '\u0000',
    'Bearer ',
    '/e/1/a/',
    'GET',
    'PUT',
    'HEAD',
    'OPTIONS',
    ':',
    '\n',
    '?',
    '#',
  ],
  inputs: 10_000,
  run: async (input) => {
    const [first = '', ...rest] = input.toString('latin1').split('\n');
    const [method = '', path = ''] = first.split(' ');
    const headers = rest.flatMap((line) => {
      const [name = '', value] = line.split(': ');
      return value === undefined ? [] : [[name, value.replace('SECRET', secret)] as [string, string]];
    });
    let request: Request;
    try {
      const body = ['GET', 'HEAD'].includes(method) ? null : '{"model": "solver"}';
      request = new Request(new URL(path, 'http://127.0.0.1:1'), { method, headers, body });
    } catch {
      return; // a server cannot receive this
    }
    const answer = await gateway.app.fetch(request);
    if (request.method !== 'HEAD') await answered(new URL(request.url).pathname, answer);
  },
};

/** The targets. */
export const requests: readonly Target[] = [
  bodies('chat-requests', '/v1/chat/completions', [
    { model: 'solver', messages: [{ role: 'user', content: 'Hi' }] },
    {
      model: 'intercepted/solver',
      messages: [
        { role: 'developer', content: [{ type: 'text', text: 'Be brief.' }] },
        { role: 'user', content: 'What is in a?', name: 'me' },
        { role: 'assistant', content: null, tool_calls: [call] },
        { role: 'tool', tool_call_id: 'call_1_0', content: 'seven' },
      ],
      tools: [{ type: 'function', function: tool }],
      tool_choice: { type: 'function', function: { name: 'look' } },
      temperature: 0.5,
      max_tokens: 8,
      n: 1,
      logprobs: true,
      stream_options: { include_usage: true },
      response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'object' } } },
    },
  ]),
  bodies('responses-requests', '/e/0/a/solver/v1/responses', [
    { model: 'any', input: 'Hi', instructions: 'Be brief.' },
    {
      model: 'any',
      input: [
        { role: 'user', content: [{ type: 'input_text', text: 'What is in a?' }] },
        { type: 'message', id: 'msg_1', role: 'assistant', content: [{ type: 'output_text', text: 'I look.' }] },
        { type: 'function_call', call_id: 'call_1_0', name: 'look', arguments: '{}' },
        { type: 'function_call_output', call_id: 'call_1_0', output: 'seven' },
        { type: 'reasoning', id: 'rs_1', summary: [] },
        { type: 'item_reference', id: 'msg_1' },
        { type: 'item_reference', id: 'fc_call_1_0' },
      ],
      tools: [{ type: 'function', ...tool }],
      tool_choice: { type: 'function', name: 'look' },
      max_output_tokens: 8,
      text: { format: { type: 'json_schema', schema: { type: 'object' } } },
      top_p: 0.5,
    },
  ]),
  bodies('messages-requests', '/v1/messages', [
    { model: 'verifier', max_tokens: 5, messages: [{ role: 'user', content: 'Hi' }] },
    {
      model: 'verifier',
      system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'What is in a?' }] },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'call_1_0', name: 'look', input: { at: 'a' } }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1_0', content: 'seven' }] },
      ],
      tools: [{ name: 'look', input_schema: tool.parameters }],
      tool_choice: { type: 'any' },
      max_tokens: 5,
      temperature: 1,
      stop_sequences: ['a'],
    },
  ]),
  lines,
];
