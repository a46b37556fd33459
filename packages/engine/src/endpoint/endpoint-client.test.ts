import { gzipSync } from 'node:zlib';
import { describe, expect, it, vi } from 'vitest';
import { chatServer, json, refuse, say } from '../../../../test/support/chat-server.js';
import { takesTime, timeForMishaps } from '../../../../test/support/time-and-chance.js';
import { redirecting } from '../../../../test/support/web-server.js';
import { EndpointError } from '../base/core/errors.js';
import { given } from '../base/core/validation/objects.js';
import { openEndpoint } from './endpoint-client.js';
import { endpointSchema } from './endpoint-spec.js';

const request = {
  messages: [{ role: 'user', content: 'Who?' } as const],
  temperature: 0.7,
  topP: 0.9,
  topK: 0,
  maxTokens: 12,
  seed: 5,
};
const never = new AbortController().signal;

function open(url: string, options: Record<string, unknown> = {}, environment: NodeJS.ProcessEnv = {}) {
  return openEndpoint(endpointSchema.parse({ type: 'endpoint', url, model: 'judge-1', ...options }), environment);
}

describe('an endpoint', () => {
  it('is asked as the protocol says, and answers with text and counts', async () => {
    const { requests, url } = await chatServer((_, response) => say(response, 'Me.'));
    expect(await open(url).complete(request, never)).toEqual({
      text: 'Me.',
      finishReason: 'stop',
      promptTokens: 11,
      responseTokens: 7,
    });
    expect(requests[0]?.url).toBe('/v1/chat/completions');
    expect(requests[0]?.body).toEqual({
      model: 'judge-1',
      messages: [{ role: 'user', content: 'Who?' }],
      temperature: 0.7,
      top_p: 0.9,
      max_tokens: 12,
      seed: 5,
    });
  });

  it('is offered tools, and sent calls and results, as the protocol says', async () => {
    const call = { id: 'c1', type: 'function', function: { name: 'add', arguments: '{"a":1}' } };
    const message = { content: null, reasoning_content: 'hm', tool_calls: [call] };
    const choices = [{ message, finish_reason: 'tool_calls' }];
    const { requests, url } = await chatServer((_, response) => json(response, { choices }));
    const toolCalls = [{ id: 'c1', name: 'add', arguments: '{"a":1}' }];
    const tool = { name: 'add', parameters: { type: 'object' }, strict: true };
    const messages = [
      { role: 'user', name: 'Ann', content: 'Who?' } as const,
      { role: 'assistant', content: '', toolCalls } as const,
      { role: 'tool', content: '1', toolCallId: 'c1', name: 'add' } as const,
    ];
    const lax = { name: 'now', parameters: {} };
    const tools = [tool, { ...lax, strict: false }];
    const further = { ...request, messages, tools, toolChoice: { name: 'add' } };
    expect(await open(url).complete(further, never)).toEqual({
      text: '',
      finishReason: 'stop',
      reasoning: 'hm',
      toolCalls,
      providerData: { tool_calls: [call] },
    });
    expect(requests[0]?.body.tools).toEqual([tool, lax].map((each) => ({ type: 'function', function: each })));
    expect(requests[0]?.body.messages).toEqual([
      { role: 'user', content: 'Who?' }, // some servers refuse the name of who speaks
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', content: '1', tool_call_id: 'c1' },
    ]);
    expect(requests[0]?.body.tool_choice).toEqual({ type: 'function', function: { name: 'add' } });
  });

  it.each(['reasoning_content', 'reasoning'])('is sent the reasoning before calls back as %s', async (name) => {
    const message = { content: 'Me.', [name]: 'hm' };
    const { requests, url } = await chatServer((_, response) => json(response, { choices: [{ message }] }));
    const endpoint = open(url);
    await endpoint.complete(request, never);
    const said = { role: 'assistant', content: '', reasoning: 'hm' } as const;
    const toolCalls = [{ id: 'c1', name: 'add', arguments: '{}' }];
    await endpoint.complete({ ...request, messages: [{ ...said, toolCalls }, said] }, never);
    const tool_calls = [{ id: 'c1', type: 'function', function: { name: 'add', arguments: '{}' } }];
    expect(requests[1]?.body.messages).toEqual([
      { role: 'assistant', content: null, tool_calls, [name]: 'hm' },
      { role: 'assistant', content: '' },
    ]);
  });

  it('is sent its calls back as it wrote them, with signatures and ids of its own', async () => {
    const signed = { extra_content: { google: { thought_signature: 'AbC==' } } };
    const written = [
      { index: 0, id: 'Xy1_Z', type: 'function', function: { name: 'add', arguments: '{"a": 1}', more: 1 }, ...signed },
      { id: 'Xy2_Z', function: { name: 'add', arguments: '' } },
    ];
    const message = {
      content: '',
      tool_calls: written,
      reasoning_details: [{ type: 'reasoning.encrypted', data: 'x' }],
    };
    const { requests, url } = await chatServer((_, response) => json(response, { choices: [{ message }] }));
    const endpoint = open(url);
    const { toolCalls = [], providerData } = await endpoint.complete(request, never);
    expect(toolCalls.map((call) => call.arguments)).toEqual(['{"a": 1}', '{}']);
    const known = toolCalls.map((call, n) => ({ ...call, id: `call_0_${n}` }));
    const results = known.map(({ id }) => ({ role: 'tool', content: id, toolCallId: id }) as const);
    const said = { role: 'assistant', content: '', toolCalls: known, ...given({ providerData }) } as const;
    const others = [1, [], [written[0], written[0]]].map((tool_calls) => ({ ...said, providerData: { tool_calls } }));
    await endpoint.complete({ ...request, messages: [said, ...results, ...others] }, never);
    const [again, first, second, ...foreign] = (requests[1]?.body.messages ?? []) as readonly Record<string, unknown>[];
    expect(again).toEqual({
      ...message,
      ...{ role: 'assistant', content: null },
      tool_calls: [written[0], { id: 'Xy2_Z', type: 'function', function: { name: 'add', arguments: '{}' } }],
    });
    expect([first, second]).toMatchObject([{ tool_call_id: 'Xy1_Z' }, { tool_call_id: 'Xy2_Z' }]);
    for (const each of foreign)
      expect(each.tool_calls).toMatchObject(known.map(({ id }) => ({ id, type: 'function' })));
  });

  it.each([400, 422])('that refuses strict tools with %i is asked again without, and then no more', async (status) => {
    const { requests, url } = await chatServer((asked, response) =>
      JSON.stringify(asked).includes('strict') ? refuse(response, status, 'unknown field') : say(response, 'Me.'),
    );
    const endpoint = open(url);
    const tools = [{ name: 'add', parameters: { type: 'object' }, strict: true }];
    for (const _ of [1, 2])
      expect(await endpoint.complete({ ...request, tools }, never)).toMatchObject({ text: 'Me.' });
    expect(requests).toHaveLength(3);
  });

  it('that has taken strict tools, or filters an answer, gets them after a refusal too', async () => {
    const filtered = { choices: [{ message: { content: '' }, finish_reason: 'content_filter' }] };
    const tools = [{ name: 'add', parameters: { type: 'object' }, strict: true }];
    const { requests, url } = await chatServer((_, response, index) => {
      if (index === 0) json(response, filtered);
      else if (index === 2) refuse(response, 400, 'the model wrote no valid call');
      else say(response, 'Me.');
    });
    const endpoint = open(url);
    await expect(endpoint.complete({ ...request, tools }, never)).rejects.toThrow('422 "a content filter');
    for (const _ of [1, 2, 3]) await endpoint.complete({ ...request, tools }, never);
    expect(requests.map(({ body }) => JSON.stringify(body).includes('strict'))).toEqual([
      true,
      true,
      true,
      false,
      true,
    ]);
  });

  it('that refuses also tools that are not strict says what it said first', async () => {
    const { requests, url } = await chatServer((_, response, index) => refuse(response, 400, `fault ${index}`));
    const tools = [{ name: 'add', parameters: { type: 'object' }, strict: true }];
    await expect(open(url).complete({ ...request, tools }, never)).rejects.toThrow('fault 0');
    expect(requests).toHaveLength(2);
  });

  it('may answer with parts, of which thinking is not sent back', async () => {
    const thinking = { type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] };
    const content = [thinking, ...['Me', '.'].map((text) => ({ type: 'text', text }))];
    const usage = { prompt_tokens: 11, completion_tokens: null };
    const reply = { choices: [{ message: { content } }], usage };
    const { requests, url } = await chatServer((_, response) => json(response, reply));
    const endpoint = open(url);
    const answer = { text: 'Me.', reasoning: 'hm', finishReason: 'stop', promptTokens: 11 };
    expect(await endpoint.complete(request, never)).toEqual(answer);
    const said = { role: 'assistant', content: 'Me.', reasoning: 'hm' } as const;
    const toolCalls = [{ id: 'c1', name: 'add', arguments: '{}' }];
    await endpoint.complete({ ...request, messages: [{ ...said, toolCalls }] }, never);
    const tool_calls = [{ id: 'c1', type: 'function', function: { name: 'add', arguments: '{}' } }];
    expect(requests[1]?.body.messages).toEqual([{ role: 'assistant', content: 'Me.', tool_calls }]);
  });

  it.each([{}, { 'content-type': 'text/html' }, { 'content-type': 'Application/JSON' }])(
    'may write its JSON under %j',
    async (headers) => {
      const answer = JSON.stringify({ choices: [{ message: { content: 'Me.' } }] });
      const { url } = await chatServer((_, response) => response.writeHead(200, headers).end(answer));
      expect(await open(url).complete(request, never)).toMatchObject({ text: 'Me.' });
    },
  );

  it.each(['', '{"choices": [', '{"choices": NaN}'])('that answers %j is no chat completion', async (body) => {
    const { url } = await chatServer((_, response) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(body),
    );
    const fault = `the answer is not a chat completion: expected JSON, got ${JSON.stringify(body)}`;
    await expect(open(url).complete(request, never)).rejects.toThrow(fault);
  });

  it.each([null, ''])('may refuse in words beside a content of %j', async (content) => {
    const choices = [{ message: { content, refusal: 'No.' } }];
    const { url } = await chatServer((_, response) => json(response, { choices }));
    expect(await open(url).complete(request, never)).toMatchObject({ text: 'No.' });
  });

  it('is sent further fields, and none that are null', async () => {
    const { requests, url } = await chatServer((_, response) => say(response, ''));
    const body = { max_tokens: null, top_p: null, max_completion_tokens: 3, reasoning_effort: 'low' };
    await open(url, { body }).complete(request, never);
    const { messages, ...sent } = requests[0]?.body ?? { messages: [] };
    expect(sent).toEqual({
      model: 'judge-1',
      temperature: 0.7,
      seed: 5,
      max_completion_tokens: 3,
      reasoning_effort: 'low',
    });
  });

  it('is sent the key of the recipe, else of the environment, else none', async () => {
    const { requests, url } = await chatServer((_, response) => say(response, ''));
    const environment = { OPENAI_API_KEY: 'from-environment' };
    await open(url, { apiKey: 'own' }, environment).complete(request, never);
    await open(url, {}, environment).complete(request, never);
    await open(url, { apiKey: '' }, environment).complete(request, never);
    await open(url).complete(request, never);
    const sent = requests.map(({ headers }) => headers.authorization);
    expect(sent).toEqual(['Bearer own', 'Bearer from-environment', undefined, undefined]);
  });

  it('says what was cut short, and nothing where it said nothing', async () => {
    const choice = (message: object, finish_reason: string) => [{ message, finish_reason }];
    const cut = ['length', 'model_length', 'MAX_TOKENS'];
    const answers = [
      ...cut.map((reason) => choice({ content: 'a lo' }, reason)),
      choice({ content: null }, 'stop'),
      choice({ content: null, refusal: 'I will not.' }, 'stop'),
    ];
    const { url } = await chatServer((_, response, index) => json(response, { choices: answers[index] }));
    const endpoint = open(url);
    for (const _ of cut)
      expect(await endpoint.complete(request, never)).toEqual({ text: 'a lo', finishReason: 'length' });
    expect(await endpoint.complete(request, never)).toEqual({ text: '', finishReason: 'stop' });
    expect(await endpoint.complete(request, never)).toEqual({ text: 'I will not.', finishReason: 'stop' });
  });
});

it.each([[''], [null], [undefined], ['{}']])('calls a tool without arguments by the arguments %j', async (none) => {
  const call = { id: 'c1', type: 'function', function: { name: 'now', arguments: none } };
  const choices = [{ message: { content: null, tool_calls: [call] }, finish_reason: 'tool_calls' }];
  const { url } = await chatServer((_, response) => json(response, { choices }));
  const { toolCalls } = await open(url).complete(request, never);
  expect(toolCalls).toEqual([{ id: 'c1', name: 'now', arguments: '{}' }]);
});

it.each([
  ['reasoning_content', { reasoning_content: 'hm', reasoning: null }],
  ['reasoning', { reasoning: 'hm' }],
  ['both', { reasoning_content: 'hm', reasoning: 'hm' }],
])('thinks in the field that servers have for it: %s', async (_, thought) => {
  const choices = [{ message: { content: 'Me.', ...thought }, finish_reason: 'stop' }];
  const { url } = await chatServer((_, response) => json(response, { choices }));
  expect(await open(url).complete(request, never)).toMatchObject({ text: 'Me.', reasoning: 'hm' });
});

describe('the parts of an answer that servers write otherwise', () => {
  const call = (changes: object, id: unknown = 'c1') => ({
    tool_calls: [{ id, function: { name: 'now', arguments: '{}', ...changes } }],
  });
  const asRead = (id: string, text: string) => ({ text: '', toolCalls: [{ id, name: 'now', arguments: text }] });
  it.each<[string, object, object]>([
    ['arguments as an object', call({ arguments: { a: [1, 'x'] } }), asRead('c1', '{"a":[1,"x"]}')],
    ['the id of a call as a number', call({}, 7), asRead('7', '{}')],
    [
      'references among texts',
      {
        content: [
          { type: 'text', text: 'M' },
          { type: 'reference', reference_ids: [1] },
          { type: 'text', text: 'e.' },
        ],
      },
      { text: 'Me.' },
    ],
    [
      'thoughts of another name among texts',
      {
        content: [
          { type: 'reasoning', text: 'hm' },
          { type: 'thinking', thinking: 'ah', text: null },
          { type: 'text', text: 'Me.' },
        ],
      },
      { text: 'Me.', reasoning: 'ah' },
    ],
    ['texts of another name', { content: [{ type: 'output_text', text: 'Me.' }] }, { text: 'Me.' }],
    [
      'thinking as a text',
      {
        content: [
          { type: 'thinking', thinking: 'hm' },
          { type: 'text', text: 'Me.' },
        ],
      },
      { text: 'Me.', reasoning: 'hm' },
    ],
    ['thoughts as a list', { content: 'Me.', reasoning_content: ['hm'], reasoning: { text: 'hm' } }, { text: 'Me.' }],
  ])('are read: %s', async (_, message, read) => {
    const choices = [{ message, finish_reason: 1 }];
    const { url } = await chatServer((_, response) => json(response, { choices, usage: 'none' }));
    expect(await open(url).complete(request, never)).toMatchObject({ ...read, finishReason: 'stop' });
  });
});

describe('an endpoint that fails', () => {
  it.each([
    [{ object: 'error', message: 'an id must have 9 letters', code: '3280' }],
    [[{ error: { code: 400, message: 'a signature is missing' } }]],
    [{ detail: [{ loc: ['body', 'seed'], msg: 'Extra inputs are not permitted' }] }],
    [{ message: 'too long', error: null }],
    ['too long'],
  ])('is told with its reply, whatever the form: %j', async (reply) => {
    const { url } = await chatServer((_, response) => json(response, reply, 400));
    await expect(open(url).complete(request, never)).rejects.toThrow(`${url}: 400 ${JSON.stringify(reply)}`);
  });

  const ended = (more: object) => ({ choices: [{ message: { content: '' }, finish_reason: 'error', ...more }] });
  it.each<[string, object, string, number]>([
    ['a busy upstream', { error: { message: 'rate limited', code: 429 } }, '429 rate limited', 2],
    ['an unknown model', { error: { message: 'no such model', code: 404 } }, '404 no such model', 1],
    ['a code that is no status', { error: { message: 'broken', code: 'server_error' } }, '502 broken', 2],
    ['a text', { error: 'Unexpected endpoint' }, '502 "Unexpected endpoint"', 2],
    ['an answer with an error', ended({ error: { message: 'gone', code: 503 } }), '503 gone', 2],
    ['an answer that ended by one', ended({}), '502 "the model ended its answer by an error"', 2],
    ['an aborted one', ended({ finish_reason: 'abort' }), '502 "the server aborted the answer"', 2],
    ...['content_filter', 'SAFETY', 'content_filter: RECITATION', 'PROHIBITED_CONTENT'].map(
      (reason): [string, object, string, number] => [
        `one that ${reason} ended`,
        ended({ finish_reason: reason }),
        '422 "a content filter ended the answer"',
        1,
      ],
    ),
  ])('with status 200 is refused with its reason: %s', async (_, body, message, count) => {
    const { requests, url } = await chatServer((_, response) => json(response, body));
    await expect(open(url, { retries: 1 }).complete(request, never)).rejects.toThrow(`${url}: ${message}`);
    expect(requests).toHaveLength(count);
  });

  it.each([429, 500, 503])('is asked again after %i, so often and no oftener', async (status) => {
    const { requests, url } = await chatServer(({ body }, response, index) =>
      body.seed === 5 && index >= 2 ? say(response, 'at last') : refuse(response, status),
    );
    expect((await open(url, { retries: 2 }).complete(request, never)).text).toBe('at last');
    expect(requests).toHaveLength(3);
    const failure = open(url, { retries: 1 }).complete({ ...request, seed: 6 }, never);
    await expect(failure).rejects.toThrow(`${url}: ${status} status ${status}`);
    await expect(failure).rejects.not.toThrow(EndpointError);
    expect(requests).toHaveLength(5);
  });

  it('is given up after the time that an attempt may take', { tags: 'verify' }, async () => {
    const { requests, url } = await chatServer(() => {});
    const failure = open(url, { timeoutMs: 300, retries: 1 }).complete(request, never);
    await expect(failure).rejects.toThrow(`${url}: Request timed out.`);
    expect(requests).toHaveLength(2);
  });

  it.each([
    ['a page', (response: Parameters<typeof say>[0]) => response.end('<html>busy</html>')],
    ['no choices', (response: Parameters<typeof say>[0]) => json(response, { choices: [] })],
    ['another protocol', (response: Parameters<typeof say>[0]) => json(response, { output: 'hello' })],
    [
      'half of a document',
      (response: Parameters<typeof say>[0]) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end('{"choices": [');
      },
    ],
  ])('with %s is no answer', async (_, answer) => {
    const { url } = await chatServer((_, response) => answer(response));
    await expect(open(url, { retries: 0 }).complete(request, never)).rejects.toThrow(
      /^http:.*: (the answer is not a chat completion|.*JSON)/,
    );
  });

  it('with a page shows the page, and no key in it', async () => {
    const { url } = await chatServer(({ headers }, response) => response.end(`<p>${headers.authorization}</p>`));
    const failure = open(url, { retries: 0, apiKey: 'sk-very-secret' }).complete(request, never);
    await expect(failure).rejects.toThrow('expected JSON, got "<p>Bearer [secret]</p>"');
  });

  it('because nobody listens is told with its reason', async () => {
    const { requests, url } = await chatServer((_, response) => say(response, ''));
    const nowhere = url.replace(/:\d+\//, ':1/');
    await expect(open(nowhere, { retries: 0 }).complete(request, never)).rejects.toThrow(
      /127\.0\.0\.1:1\/v1: Connection error/,
    );
    expect(requests).toEqual([]);
  });

  it.each([401, 403, 404])('for good (%i) ends everything, and shows no key', async (status) => {
    const { requests, url } = await chatServer(({ headers }, response) =>
      refuse(response, status, `no such right: ${headers.authorization}`),
    );
    const failure = open(url, { apiKey: 'sk-very-secret' }).complete(request, never);
    await expect(failure).rejects.toThrow(EndpointError);
    await expect(failure).rejects.toThrow(`${url}: ${status} no such right: Bearer [secret]`);
    expect(requests).toHaveLength(1);
  });

  it.each([301, 302, 303, 307, 308])('because it sends prompts on (%i) ends everything', async (status) => {
    const other = await chatServer((_, response) => say(response, 'caught'));
    const { url } = await redirecting(status, other.url);
    const failure = open(`${url}/v1`, { apiKey: 'sk-very-secret' }).complete(request, never);
    await expect(failure).rejects.toThrow(EndpointError);
    await expect(failure).rejects.toThrow(`${status}: the server redirects requests to ${new URL(other.url).origin}`);
    expect(other.requests).toEqual([]);
  });

  it('with an answer without end is asked once, and not read to the end', async () => {
    const { requests, url } = await chatServer((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
      response.end(gzipSync(Buffer.alloc(20e6, ' ')));
    });
    await expect(open(url).complete(request, never)).rejects.toThrow(/413 the answer is longer than 16.0 MB/);
    expect(requests).toHaveLength(1);
  });

  it.each([204, 304, 700])('with the status %i, without a body, is no answer', async (status) => {
    const { url } = await chatServer((_, response) => response.writeHead(status).end());
    await expect(open(url, { retries: 0 }).complete(request, never)).rejects.toThrow(/502/);
  });

  it('shows no key in what it says either', async () => {
    const { url } = await chatServer(({ headers }, response) => say(response, `you sent ${headers.authorization}`));
    const { text } = await open(url, { apiKey: 'sk-very-secret' }).complete(request, never);
    expect(text).toBe('you sent Bearer [secret]');
  });

  it('32 times in a row ends everything; one answer in between does not', async () => {
    const { url } = await chatServer((_, response, index) =>
      index === 31 ? say(response, '') : refuse(response, 400, 'too long'),
    );
    const endpoint = open(url, { retries: 0, concurrency: 1 });
    const ends: string[] = [];
    for (let i = 0; i < 64; i++)
      ends.push(
        await endpoint.complete(request, never).then(
          () => 'said',
          (error: Error) => error.name,
        ),
      );
    const errors = (count: number) => new Array<string>(count).fill('Error');
    expect(ends).toEqual([...errors(31), 'said', ...errors(31), 'EndpointError']);
  });
});

describe('requests at the same time', () => {
  it('are no more than was said', async () => {
    let [now, most] = [0, 0];
    const { url } = await chatServer((_, response) => {
      most = Math.max(most, ++now);
      void takesTime(5).then(() => {
        now--;
        say(response, '');
      });
    });
    const endpoint = open(url, { concurrency: 3 });
    await Promise.all(Array.from({ length: 12 }, () => endpoint.complete(request, never)));
    expect(most).toBe(3);
  });

  it('that are cancelled end with the reason; those that wait are never sent', async () => {
    const { requests, url } = await chatServer(() => controller.abort(reason));
    const controller = new AbortController();
    const reason = new Error('the episode is over');
    const endpoint = open(url, { concurrency: 1 });
    const calls = [1, 2, 3].map(() => endpoint.complete(request, controller.signal));
    for (const call of calls) await expect(call).rejects.toBe(reason);
    expect(requests).toHaveLength(1);
  });
});

it('waits before a retry without an overflow of the timer, if the server asks for 1e9 s', async () => {
  const warned = vi.fn();
  process.on('warning', warned);
  const controller = new AbortController();
  const { requests, url } = await chatServer((_, response) => {
    response.writeHead(429, { 'content-type': 'application/json', 'retry-after': '1000000000' });
    response.end('{}');
  });
  const endpoint = openEndpoint(endpointSchema.parse({ type: 'endpoint', url, model: 'm', timeoutMs: 1e12 }), {});
  const request = { messages: [], temperature: 1, topP: 1, topK: 0, maxTokens: 1, seed: 1 };
  const answer = endpoint.complete(request, controller.signal);
  answer.catch(() => {});
  await timeForMishaps(300);
  process.off('warning', warned);
  expect(requests).toHaveLength(1);
  expect(warned).not.toHaveBeenCalled();
  controller.abort(new Error('over'));
});
