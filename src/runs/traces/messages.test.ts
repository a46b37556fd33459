import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { processorSeconds } from '../../../test/support/time-and-chance.js';
import { temporaryRoot } from '../../../test/support/tiny-run.js';
import { importTraces } from './import-traces.js';

const root = temporaryRoot();
let count = 0;

type Fields = Readonly<Record<string, unknown>>;

/** The demonstrations and the task that an import writes of these rows, of which nothing may be left out. */
async function imported(...rows: readonly Fields[]) {
  const folder = join(root, String(count++));
  await mkdir(folder);
  const file = join(folder, 'traces.jsonl');
  await writeFile(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  const { unread } = await importTraces(file, { agent: 'buyer' }, join(folder, 'out'));
  expect(unread).toEqual({});
  const linesOf = async (name: string) => (await readFile(join(folder, 'out', name), 'utf8')).trim().split('\n');
  const demonstrations = (await linesOf('demonstrations.jsonl')).map((line) => JSON.parse(line));
  return { demonstrations, tasks: await linesOf('tasks.jsonl') };
}

const question = { role: 'user', content: 'Price?' };
const told = { role: 'assistant', content: 'Five.' };
const called = { role: 'assistant', content: '', tool_calls: [{ id: 7, name: 'price', args: {} }] };
const price = { name: 'price', description: 'of one', parameters: { type: 'object', properties: { f: {} } } };

const call = (input: unknown, output: unknown = told, attributes: Fields = {}, span: Fields = {}) => ({
  ...{ traceId: 't', spanId: 's', ...span },
  attributes: {
    ...{ 'gen_ai.operation.name': 'chat', 'gen_ai.input.messages': input, 'gen_ai.output.messages': output },
    ...attributes,
  },
});

it.each([{ tools: [{ name: 'other' }] }, { tools: ['other'] }, { functions: 'other' }])(
  'reads the tools of a request of Langfuse, beside the metadata %j',
  async (metadata) => {
    const input = { messages: [question], tools: [price] };
    const row = { traceId: 't', id: 'g', type: 'GENERATION', input, output: told, metadata };
    expect((await imported(row)).demonstrations[0].tools).toEqual([price]);
    const plain = (await imported({ ...row, input: [question], metadata: { functions: 'other' } })).demonstrations;
    expect(plain[0].tools).toBeUndefined();
  },
);

const two = ['fig', 'kiwi'].map((f, i) => ({ id: `c${i}`, name: 'price', arguments: `{"f":"${f}"}` }));
const answers = two.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: '5' }));
const text = (content: string) => ({ type: 'text', content });
const parts = two.map(({ arguments: json, ...fields }) => ({
  type: 'tool_call',
  ...fields,
  arguments: JSON.parse(json),
}));
const asTexts = (of: (call: (typeof two)[number]) => object) => two.map((each) => text(JSON.stringify(of(each))));
/** One answer with a text and two calls, as tracers of Python write it into the history of the next call. */
const histories: Readonly<Record<string, readonly object[]>> = {
  'OpenAI itself': [{ role: 'assistant', content: 'Hm.', tool_calls: two }],
  'OpenInference 3.1 of Anthropic': [
    {
      role: 'assistant',
      contents: [
        { message_content: { type: 'text', text: 'Hm.' } },
        ...two.map(({ id, ...called }) => ({
          message_content: { type: 'tool_use' },
          tool_call: { id, function: called },
        })),
      ],
    },
  ],
  'OpenLLMetry 0.62 of Responses': [text('Hm.'), ...parts].map((part) => ({ role: 'assistant', parts: [part] })),
  'OpenInference 0.1.66 of Responses': [
    { role: 'assistant', content: 'Hm.' },
    ...two.map((each) => ({ role: 'assistant', tool_calls: [each] })),
  ],
  'OpenLLMetry 0.62 of LangChain with Responses': [
    {
      role: 'assistant',
      parts: [
        text('{"id":"rs_1","summary":[],"type":"reasoning"}'),
        text('Hm.'),
        ...asTexts(({ id, ...call }) => ({ ...call, call_id: id, type: 'function_call', id: `fc_${id}` })),
        ...parts,
      ],
    },
  ],
  'OpenLLMetry 0.62 of LangChain with Anthropic': [
    {
      role: 'assistant',
      parts: [
        text('{"signature":"","thinking":"why","type":"thinking"}'),
        text('Hm.'),
        ...asTexts(({ id, name }) => ({ id, input: {}, name, type: 'tool_use' })),
        ...parts,
      ],
    },
  ],
};
it.each(Object.keys(histories))('reads an answer with two calls in the history of %s', async (name) => {
  const history = [question, ...(histories[name] ?? []), ...answers];
  const row = call(history, told, { 'gen_ai.tool.definitions': [price] });
  const messages = (await imported(row)).demonstrations.at(-1)?.messages;
  expect(messages?.[1]).toEqual({ role: 'assistant', content: 'Hm.', toolCalls: two });
  expect(messages?.length).toBe(5);
});

it('leaves calls of another speaker than the text before them in a message of their own', async () => {
  const of = (name: string) => [
    { role: 'assistant', name, content: 'Hm.' },
    { role: 'assistant', name: 'coder', content: '', tool_calls: two },
  ];
  const lengthOf = async (history: readonly object[]) => {
    const row = call([question, ...history, ...answers], told, { 'gen_ai.tool.definitions': [price] });
    return (await imported(row)).demonstrations.at(-1)?.messages.length;
  };
  expect([await lengthOf(of('planner')), await lengthOf(of('coder'))]).toEqual([6, 5]);
});

it('leaves JSON in an answer that is no part', async () => {
  for (const json of ['{"type":"function_call","id":"c9"}', '{"type":"thinking","of":"figs"}']) {
    const [row] = (await imported(call([question], { role: 'assistant', parts: [text('So: '), text(json)] })))
      .demonstrations;
    expect(row.messages.at(-1)).toEqual({ role: 'assistant', content: `So: ${json}` });
  }
});

it('reads a call once of which another tracer wrote a span beside it, by the id of the answer', async () => {
  const id = { 'gen_ai.response.id': 'msg_1' };
  const bare = call(undefined, undefined, id, { spanId: 'b', name: 'of the client' });
  expect((await imported(bare, call([question], told, id))).demonstrations).toHaveLength(1);
});

it('reads a prompt of one text that begins as a transcript does', async () => {
  const content = 'user: is this a name, or a role?';
  const [row] = (await imported(call(content))).demonstrations;
  expect(row.messages[0]).toEqual({ role: 'user', content });
});

it.each<[string, unknown, string]>([
  ['of AI SDK', { type: 'json', value: { value: 1, unit: 'kg' } }, '{"value":1,"unit":"kg"}'],
  ['of a program, with a field of AI SDK', { value: 5, unit: 'kg' }, '{"value":5,"unit":"kg"}'],
  ['of a program, with two such fields', { type: 'apple', value: 3 }, '{"type":"apple","value":3}'],
])('reads the whole result of a tool %s', async (_, response, content) => {
  const result = { role: 'tool', parts: [{ type: 'tool_call_response', id: 7, response }] };
  const [row] = (await imported(call([question, called, result]))).demonstrations;
  expect(row.messages[2]).toEqual({ role: 'tool', content, toolCallId: '7' });
});

it.each<[unknown, string]>([
  [['a', 'b'], '["a","b"]'],
  [[{ price: 3 }], '[{"price":3}]'],
  [[{ type: 'text', text: 'a' }, { text: 'b' }], 'ab'],
])('reads the content %j of a message of a tool', async (content, read) => {
  const result = { role: 'tool', tool_call_id: 7, content };
  const [row] = (await imported(call([question, called, result]))).demonstrations;
  expect(row.messages[2]).toEqual({ role: 'tool', content: read, toolCallId: '7' });
});

it.each([
  { type: 'tool_result', tool_use_id: 7 },
  { type: 'tool_result', tool_use_id: 7, content: null },
  { type: 'tool_call_response', id: 7, response: null },
  { functionResponse: { id: 7 } },
])('reads a result without a content as an empty text: %j', async (part) => {
  const [row] = (await imported(call([question, called, { role: 'user', content: [part] }]))).demonstrations;
  expect(row.messages[2]).toEqual({ role: 'tool', content: '', toolCallId: '7' });
});

it.each([
  [[{ text: 'five' }], 'five'],
  [[{ json: { a: 1 } }], '{"a":1}'],
])("reads Bedrock's result %j", async (content, read) => {
  const result = { role: 'user', content: [{ toolResult: { toolUseId: 7, content } }, { cachePoint: {} }] };
  const [row] = (await imported(call([question, called, result]))).demonstrations;
  expect(row.messages[2]).toEqual({ role: 'tool', content: read, toolCallId: '7' });
});

const listed = (id: unknown, f: string) => ({ id, name: 'price', args: { f } });

it.each<[string, Fields, readonly unknown[]]>([
  ['with equal ids', { tool_calls: [listed('price', 'a'), listed('price', 'b')] }, ['{"f":"a"}', '{"f":"b"}']],
  [
    'that LangChain streamed among the parts',
    { content: [{ type: 'tool_use', id: 'x', name: 'price', input: '' }], tool_calls: [listed('x', 'a')] },
    ['{"f":"a"}'],
  ],
  [
    'of older versions of LangChain',
    { content: 'Wait.', additional_kwargs: { function_call: { name: 'price', arguments: '{"f":"a"}' } } },
    ['{"f":"a"}'],
  ],
  [
    'of older versions of OpenInference',
    { content: 'Wait.', function_call_name: 'price', function_call_arguments_json: '{"f":"a"}' },
    ['{"f":"a"}'],
  ],
])('reads calls %s', async (_, answer, expected) => {
  const span = call([question], [{ type: 'ai', role: 'assistant', ...answer }], { 'gen_ai.tool.definitions': [price] });
  const [{ messages }] = (await imported(span)).demonstrations;
  expect(messages[1].toolCalls.map((each: Fields) => each.arguments)).toEqual(expected);
});

it('keeps the digits of ids', async () => {
  const calls = '[{"id":2512292042121000001,"function":{"name":"price","arguments":"{}"}}]';
  const [{ messages }] = (await imported(call([question, { ...called, tool_calls: calls }]))).demonstrations;
  expect(messages[1].toolCalls[0].id).toBe('2512292042121000001');
});

it.each<[string, unknown, string]>([
  ['a refusal', { role: 'assistant', content: null, refusal: 'No.' }, 'No.'],
  ['a content beside empty parts', { role: 'user', parts: [], content: 'Hi' }, 'Hi'],
  ['a message of LangChain with its data', { type: 'human', data: { content: 'Hi' } }, 'Hi'],
])('reads %s', async (_, message, content) => {
  const [{ messages }] = (await imported(call([question, message, question]))).demonstrations;
  expect(messages[1].content).toBe(content);
});

it.each(['["a", "b"]', '"a"', '{"a": 1.0}', '[]'])('keeps the text %s of an event', async (content) => {
  const events = [
    { name: 'gen_ai.user.message', attributes: { content } },
    { name: 'gen_ai.choice', attributes: { index: 0, message: '{"content":"Five."}' } },
  ];
  const span = { traceId: 't', spanId: 's', attributes: { 'gen_ai.operation.name': 'chat' }, events };
  expect((await imported(span)).demonstrations[0].messages).toEqual([{ role: 'user', content }, told]);
});

const offered = { name: 'price', parameters: { type: 'object', properties: { f: {} } } };

it.each<[string, Fields]>([
  ['OpenAI’s functions', { messages: [question], functions: [offered] }],
  [
    'Bedrock',
    {
      messages: [{ role: 'user', content: [{ text: 'Price?' }] }],
      toolConfig: { tools: [{ toolSpec: { name: 'price', inputSchema: { json: offered.parameters } } }] },
    },
  ],
  [
    'Gemini',
    {
      contents: [{ role: 'user', parts: [{ text: 'Price?' }] }],
      config: { tools: [{ function_declarations: [offered] }] },
    },
  ],
  ['a table', { messages: [question], tools: { price: { parameters: offered.parameters } } }],
])('reads tools in the form of %s', async (_, request) => {
  const [{ messages, tools }] = (await imported(call(request))).demonstrations;
  expect(messages).toEqual([question, told]);
  expect(tools).toEqual([offered]);
});

it('reads tools among the parameters of a request', async () => {
  const parameters = {
    'llm.invocation_parameters': JSON.stringify({ tools: [{ type: 'function', function: price }] }),
  };
  expect((await imported(call([question], told, parameters))).demonstrations[0].tools).toEqual([price]);
});

it.each([{ system_instruction: { parts: [{ text: 'Say.' }] } }, { config: { systemInstruction: 'Say.' } }])(
  'reads the system prompt in %j',
  async (fields) => {
    const [{ messages }] = (await imported(call({ contents: 'Price?', ...fields }))).demonstrations;
    expect(messages).toEqual([{ role: 'system', content: 'Say.' }, question, told]);
  },
);

it.each(['{"name":"clerk", "tone":"calm"}', '{"text":"x"}', '{"parts": 3}'])(
  'keeps the system prompt %s',
  async (prompt) => {
    for (const span of [
      call({ system: prompt, messages: [question] }),
      call([question], told, { 'gen_ai.system_instructions': prompt }),
    ])
      expect((await imported(span)).demonstrations[0].messages).toEqual([
        { role: 'system', content: prompt },
        question,
        told,
      ]);
    const listed = call({ system: '["a"]', messages: [question] });
    expect((await imported(listed)).demonstrations[0].messages[0]).toEqual({ role: 'system', content: '["a"]' });
  },
);

it('keeps the result of a tool in an event that is a list of texts', async () => {
  const events = [
    { name: 'gen_ai.user.message', attributes: { content: 'Price?' } },
    { name: 'gen_ai.assistant.message', attributes: { tool_calls: JSON.stringify(called.tool_calls) } },
    { name: 'gen_ai.tool.message', attributes: { id: '7', content: '[{"text":"five"}]' } },
    { name: 'gen_ai.choice', attributes: { index: 0, message: '{"content":"Five."}' } },
  ];
  const span = { traceId: 't', spanId: 's', attributes: { 'gen_ai.operation.name': 'chat' }, events };
  expect((await imported(span)).demonstrations[0].messages[2].content).toBe('[{"text":"five"}]');
});

it.each<[unknown, string]>([
  ['{"text":"hi", "lang":"en"}', '{"text":"hi", "lang":"en"}'],
  [{ content: 'hi', title: 'x' }, '{"content":"hi","title":"x"}'],
  ['{"output":["a","b"]}', '{"output":["a","b"]}'],
  ['{"choices":["a"],"best":1}', '{"choices":["a"],"best":1}'],
  ['{"name":"Bo","role":"admin"}', '{"name":"Bo","role":"admin"}'],
  ['[{"fruit":"fig"}]', '[{"fruit":"fig"}]'],
  [{ choices: [{ index: 0, text: 'hi' }] }, 'hi'],
  [[{ type: 'text', text: 'hi' }], 'hi'],
  [{ text: 'hi', finishReason: 'stop', usage: {} }, 'hi'],
  [{ output: { message: { role: 'assistant', content: [{ text: 'hi' }] } }, stopReason: 'end_turn' }, 'hi'],
])('reads the answer %j', async (output, content) => {
  const [{ messages }] = (await imported(call([question], output))).demonstrations;
  expect(messages[1]).toEqual({ role: 'assistant', content });
});

it.each(['Five.', told])('reads what a traced function of LangSmith returned: %j', async (output) => {
  const run = { id: 'r', trace_id: 'r', run_type: 'llm', inputs: { messages: [question] }, outputs: { output } };
  expect((await imported(run)).demonstrations[0].messages).toEqual([question, told]);
});

it('keeps the keys of a task and of a schema as they are, with dots and of digits', async () => {
  const task = { cart: { 0: 'pear', 1: 'fig' }, 'user.name': 'Zoe' };
  const trace = {
    id: 'l',
    input: task,
    observations: [{ id: 'o', traceId: 'l', type: 'GENERATION', input: 'Hi', output: 'Yes' }],
  };
  const { tasks } = await imported(
    trace,
    { traceId: 'o', spanId: 'r', attributes: { 'input.value': task } },
    call([question], told, {}, { traceId: 'o', parentSpanId: 'r' }),
  );
  expect(tasks.map((line) => JSON.parse(line))).toEqual([
    { id: 'l', ...task },
    { id: 'o', ...task },
  ]);
  const schema = { type: 'object', properties: { 'a.b': { type: 'string' }, 0: { type: 'string' } } };
  const span = {
    ...{ traceId: 't', spanId: 's' },
    attributes: {
      'openinference.span.kind': 'LLM',
      'llm.input_messages': [{ 'message.role': 'user', 'message.content': 'Price?' }],
      'llm.output_messages.0.message.role': 'assistant',
      'llm.output_messages.0.message.tool_calls.0.tool_call.function': {
        name: 'price',
        arguments: { 0: 'a', 'x.y': 2 },
      },
      'llm.tools': [{ 'tool.json_schema': { name: 'price', parameters: schema } }],
    },
  };
  const [{ messages, tools }] = (await imported(span)).demonstrations;
  expect(tools[0].parameters).toEqual(schema);
  expect(JSON.parse(messages[1].toolCalls[0].arguments)).toEqual({ 0: 'a', 'x.y': 2 });
});

it('reads the system prompt that Braintrust writes behind the messages of Anthropic', async () => {
  const row = { span_id: 's', root_span_id: 's', span_attributes: { name: 'anthropic', type: 'llm' } };
  const input = [question, { role: 'system', content: 'Say.' }];
  const [{ messages }] = (await imported({ ...row, input, output: told })).demonstrations;
  expect(messages).toEqual([{ role: 'system', content: 'Say.' }, question, told]);
});

it('reads the answer of a call of AI SDK that Langfuse took out of the attributes', async () => {
  const metadata = {
    attributes: { 'ai.operationId': 'ai.generateText.doGenerate', 'ai.response.finishReason': 'stop' },
  };
  const row = { id: 'o', traceId: 'l', type: 'GENERATION', metadata, input: [question], output: told };
  expect((await imported(row)).demonstrations[0].messages).toEqual([question, told]);
});

it('reads messages once that stand in events of a span and in logs', async () => {
  const events = [
    { name: 'gen_ai.user.message', attributes: { content: 'Price?' } },
    { name: 'gen_ai.choice', attributes: { index: 0, message: '{"content":"Five."}' } },
  ];
  const span = { traceId: 't', spanId: 's', attributes: { 'gen_ai.operation.name': 'chat' }, events };
  const logs = events.map(({ name, attributes }, i) => {
    return { traceId: 't', spanId: 's', eventName: name, timeUnixNano: `${i}`, body: attributes };
  });
  expect((await imported(span, ...logs)).demonstrations[0].messages).toEqual([question, told]);
});

it('takes no span of a tool of Google’s ADK for a call', async () => {
  const requests = { 'gcp.vertex.agent.llm_request': '{}', 'gcp.vertex.agent.llm_response': '{}' };
  const tool = { traceId: 't', spanId: 'tool', name: 'execute_tool price', attributes: requests };
  expect((await imported(call([question]), tool)).demonstrations).toHaveLength(1);
});

it('reads the task of a span inside that of a server, and masks an id in its data', async () => {
  const task = { id: 'ann@example.com', order: '3 fig' };
  const { tasks } = await imported(
    { traceId: 't', spanId: 'r', name: 'POST /order', attributes: { 'http.request.method': 'POST' } },
    { traceId: 't', spanId: 'p', parentSpanId: 'r', attributes: { 'drmas.task.data': JSON.stringify(task) } },
    { traceId: 't', spanId: 'q', parentSpanId: 'p', attributes: { 'drmas.task.data': '{"part":1}' } },
    call([question], told, {}, { parentSpanId: 'q' }),
  );
  expect(tasks.map((line) => JSON.parse(line))).toEqual([{ id: '[e-mail address]', order: '3 fig' }]);
});

it('reads the input of a trace in a row of Langfuse’s table of traces', async () => {
  const row = { id: 'l', timestamp: '2026-01-01', session_id: null, user_id: null, input: '{"order":"3 fig"}' };
  const observation = { id: 'o', trace_id: 'l', type: 'GENERATION', input: 'Hi', output: 'Yes' };
  const { tasks } = await imported(observation, row);
  expect(tasks.map((line) => JSON.parse(line))).toEqual([{ id: 'l', order: '3 fig' }]);
});

it.each([
  ['2026-01-01T00:00:00Z', '2026-01-01T00:00:00.5Z'],
  ['2026-01-01T02:00:00+01:00', '2026-01-01T01:30:00+00:00'],
  ['2026-01-01 00:00:00', '2026-01-01 00:00:00.000001'],
])('orders the calls of a trace by their dates %s and %s', async (first, second) => {
  const later = call([{ role: 'user', content: 'Then?' }], told, {}, { spanId: 'b', startTime: second });
  const { demonstrations } = await imported(later, call([question], told, {}, { startTime: first }));
  expect(demonstrations.map(({ messages }) => messages[0].content)).toEqual(['Price?', 'Then?']);
});

it('reads a trace of any depth in a time that its length bounds', async () => {
  const depth = 1500;
  const above = Array.from({ length: depth }, (_, i) => ({
    ...{ traceId: 't', spanId: `above ${i}`, parentSpanId: `above ${i - 1}`, attributes: {} },
  }));
  const within = Array.from({ length: depth }, (_, i) =>
    call([question], told, {}, { spanId: `call ${i}`, parentSpanId: `above ${depth - 1}` }),
  );
  const seconds = await processorSeconds(async () => {
    expect((await imported(...above, ...within)).demonstrations).toHaveLength(depth);
  });
  expect(seconds).toBeLessThan(8);
});

it('reads a call beside an attribute whose name has thousands of parts', async () => {
  const name = `gen_ai.prompt.0.${'a.'.repeat(20_000)}b`;
  const attributes = { 'gen_ai.prompt.0.role': 'user', 'gen_ai.prompt.0.content': 'Price?', [name]: 1 };
  const span = call(undefined, told, attributes);
  expect((await imported(span)).demonstrations[0].messages).toEqual([question, told]);
});

it('reads a call whose tool calls a model, and that call', async () => {
  const outer = call([question], [{ ...called, tool_calls: [listed('x', 'a')] }], {
    'gen_ai.tool.definitions': [price],
  });
  const tool = {
    traceId: 't',
    spanId: 'tool',
    parentSpanId: 's',
    attributes: { 'gen_ai.operation.name': 'execute_tool' },
  };
  const inner = call([{ role: 'user', content: 'Fig?' }], told, {}, { spanId: 'inner', parentSpanId: 'tool' });
  expect((await imported(outer, tool, inner)).demonstrations).toHaveLength(2);
});

it('refuses by name to hold out tasks with a field `split` of their own, unless it is such a mark', async () => {
  const file = join(root, 'splits.jsonl');
  const holding = async (...splits: unknown[]) => {
    const row = (split: unknown, i: number) =>
      call([question], told, { 'drmas.task.data': { i, split } }, { traceId: `t${i}` });
    await writeFile(file, splits.map((split, i) => `${JSON.stringify(row(split, i))}\n`).join(''));
    return importTraces(file, { agent: 'buyer', holdOut: 0.5 });
  };
  await expect(holding('train', 'half and half')).rejects.toThrow(
    `the task of the trace t1 has a field 'split' of its own, "half and half"`,
  );
  expect(await holding('train', 'test', undefined)).toMatchObject({ tasks: 3 });
});
