import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { expectCalls, SAMPLES, sampleFile } from '../../../test/frameworks/traced-calls.js';
import { temporaryRoot } from '../../../test/support/tiny-run.js';
import { importTraces } from './import-traces.js';

const root = temporaryRoot();
const names = Object.keys(SAMPLES) as (keyof typeof SAMPLES)[];

describe('what tracers of npm wrote', () => {
  it.each(names)('becomes the demonstrations of the program: %s', async (name) => {
    await expectCalls(sampleFile(name), join(root, name), SAMPLES[name]);
  });

  it('becomes the same in one file, in any order of the lines', async () => {
    const texts = await Promise.all(names.map((name) => readFile(sampleFile(name), 'utf8')));
    // The ids of the samples are numbers from 0: each sample gets its own.
    const lines = texts.flatMap((text, i) => text.replaceAll('"id-', `"${i}-`).trim().split('\n'));
    const file = join(root, 'mixed.jsonl');
    const counts = { demonstrations: 2 * names.length - 1, unread: { media: { count: names.length } } };
    for (const mixed of [lines, lines.toReversed()]) {
      await writeFile(file, mixed.join('\n'));
      expect(await importTraces(file)).toMatchObject(counts);
    }
  });
});

const ARGUMENTS = '{"fruit":"fig","id":2512292042121000001,"weight":1.0}';
const system = { role: 'system', content: 'Say its price.' };
const question = { role: 'user', content: '3 fig' };
const answer = { role: 'assistant', content: '5' };
const tools = [{ name: 'price', parameters: { type: 'object', properties: {} } }];
const toolCall = { id: 'c1', type: 'function', function: { name: 'price', arguments: ARGUMENTS } };
const chat = [
  system,
  question,
  { role: 'assistant', content: null, tool_calls: [toolCall] },
  { role: 'tool', tool_call_id: 'c1', content: '5' },
];
const operation = { 'gen_ai.operation.name': 'chat', 'gen_ai.agent.name': 'buyer', 'gen_ai.tool.definitions': tools };
/** A span with these contents, as text: digits of numbers stay as they are. */
const span = (input: string, output: string, more = '') =>
  `{"traceId":"t","spanId":"s","name":"chat"${more},"attributes":{${JSON.stringify(operation).slice(1, -1)},` +
  `"gen_ai.input.messages":${input},"gen_ai.output.messages":${output}}}`;
/** Fields of a part in Gemini's package for Python, which writes them all. */
const EMPTY_PART = { text: null, thought: null, inline_data: null, function_call: null, function_response: null };
const json = (value: unknown) => JSON.stringify(value).replaceAll('"ARGUMENTS"', ARGUMENTS);
const typed = (attributes: object) =>
  Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === 'number' ? { int_value: String(value) } : { string_value: value },
  }));
const messageLog = (eventName: string, body: object, time: number) => ({
  ...{ traceId: 't', spanId: 's', timeUnixNano: String(time), severityNumber: 9, eventName },
  body: {
    kvlistValue: { values: Object.entries(body).map(([key, value]) => ({ key, value: { stringValue: value } })) },
  },
});
const openInference = {
  'openinference.span.kind': 'LLM',
  ...{ 'agent.name': 'buyer', 'llm.model_name': 'big' },
};

/** The same call in the forms of interfaces and exporters that no stored sample has. */
const forms: Readonly<Record<string, string>> = {
  'OpenAI’s chat': span(json(chat), json({ choices: [{ index: 0, message: answer }] })),
  'OpenAI’s Responses': span(
    json({
      instructions: system.content,
      input: [
        { type: 'message', role: 'user', content: [{ type: 'input_text', text: question.content }] },
        { type: 'reasoning', summary: [] },
        { type: 'function_call', call_id: 'c1', name: 'price', arguments: ARGUMENTS },
        { type: 'function_call_output', call_id: 'c1', output: '5' },
      ],
    }),
    json({ output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: '5' }] }] }),
  ),
  Anthropic: span(
    json({
      system: [{ type: 'text', text: system.content }],
      messages: [
        question,
        { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'price', input: 'ARGUMENTS' }] },
        {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: 'c1', content: [{ type: 'text', text: '5' }] }],
        },
      ],
    }),
    json({ role: 'assistant', content: [{ type: 'text', text: '5' }] }),
  ),
  Gemini: span(
    json({
      systemInstruction: { parts: [{ text: system.content }] },
      contents: [
        { role: 'user', parts: [{ text: question.content }] },
        { role: 'model', parts: [{ functionCall: { id: 'c1', name: 'price', args: 'ARGUMENTS' } }] },
        { role: 'user', parts: [{ functionResponse: { id: 'c1', response: { value: '5' } } }] },
      ],
    }),
    json({ candidates: [{ content: { role: 'model', parts: [{ text: '5' }] } }] }),
  ),
  Bedrock: span(
    json({
      system: [{ text: system.content }],
      messages: [
        { role: 'user', content: [{ text: question.content }] },
        { role: 'assistant', content: [{ toolUse: { toolUseId: 'c1', name: 'price', input: 'ARGUMENTS' } }] },
        { role: 'user', content: [{ toolResult: { toolUseId: 'c1', content: [{ type: 'text', text: '5' }] } }] },
      ],
    }),
    json({ output: [{ role: 'assistant', content: [{ text: '5' }] }] }),
  ),
  'LangChain’s messages': span(
    json([
      { type: 'system', content: system.content },
      { type: 'human', content: question.content },
      { type: 'ai', content: '', tool_calls: [{ id: 'c1', name: 'price', args: 'ARGUMENTS' }] },
      { type: 'tool', tool_call_id: 'c1', content: '5' },
    ]),
    json({ type: 'ai', role: 'ai', content: '5' }),
  ),
  'texts of JSON in OTLP of Python': json({
    resource_spans: [
      {
        scope_spans: [
          {
            spans: [
              {
                ...{ trace_id: 't', span_id: 's', name: 'chat', start_time_unix_nano: 1 },
                attributes: typed({
                  ...{ 'gen_ai.agent.name': 'buyer', 'gen_ai.operation.name': 'chat' },
                  'gen_ai.tool.definitions': JSON.stringify(tools),
                  'gen_ai.input.messages': JSON.stringify(chat),
                  'gen_ai.output.messages': JSON.stringify([answer]),
                }),
              },
            ],
          },
        ],
      },
    ],
  }),
  'Gemini’s package for Python': span(
    json({
      config: { system_instruction: system.content },
      contents: [
        { role: 'user', parts: [{ ...EMPTY_PART, text: question.content }] },
        { role: 'model', parts: [{ ...EMPTY_PART, function_call: { id: 'c1', name: 'price', args: 'ARGUMENTS' } }] },
        { role: 'user', parts: [{ ...EMPTY_PART, function_response: { id: 'c1', response: { value: '5' } } }] },
      ],
    }),
    json({
      candidates: [{ content: { role: 'model', parts: [{ ...EMPTY_PART, text: '5' }] }, finish_reason: 'STOP' }],
    }),
  ),
  'Google’s ADK': json({
    ...{ traceId: 't', spanId: 's', name: 'call_llm' },
    attributes: {
      ...{ 'gen_ai.agent.name': 'buyer', 'gen_ai.tool.definitions': tools },
      'gcp.vertex.agent.llm_request': json({
        config: { system_instruction: system.content },
        contents: [
          { role: 'user', parts: [{ text: question.content }] },
          { role: 'model', parts: [{ function_call: { id: 'c1', name: 'price', args: 'ARGUMENTS' } }] },
          { role: 'user', parts: [{ function_response: { id: 'c1', response: { value: '5' } } }] },
        ],
      }),
      'gcp.vertex.agent.llm_response': json({
        content: { role: 'model', parts: [{ text: '5' }] },
        finish_reason: 'STOP',
      }),
    },
  }),
  'a reply of OpenAI’s Responses that repeats its request': json({
    ...{ traceId: 't', spanId: 's', name: 'chat' },
    attributes: {
      ...{
        'gen_ai.operation.name': 'chat',
        'gen_ai.agent.name': 'buyer',
        'gen_ai.input.messages': json(chat.slice(1)),
      },
      'gen_ai.output.messages': json({
        ...{ object: 'response', instructions: system.content, tools: [{ type: 'function', ...tools[0] }] },
        output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: '5' }] }],
      }),
    },
  }),
  'OpenTelemetry’s first events': json({
    ...{ traceId: 't', spanId: 's', name: 'chat', attributes: operation },
    events: [
      { name: 'gen_ai.content.prompt', attributes: { 'gen_ai.prompt': JSON.stringify(chat) } },
      { name: 'gen_ai.content.completion', attributes: { 'gen_ai.completion': JSON.stringify([answer]) } },
    ],
  }),
  'OpenTelemetry’s logs': [
    json({
      resourceLogs: [
        {
          scopeLogs: [
            {
              logRecords: [
                messageLog('gen_ai.choice', { index: '0', message: JSON.stringify(answer) }, 9),
                messageLog('gen_ai.tool.message', { id: 'c1', content: '5' }, 4),
                messageLog('gen_ai.assistant.message', { tool_calls: JSON.stringify([toolCall]) }, 3),
                messageLog('gen_ai.user.message', { content: question.content }, 2),
                messageLog('gen_ai.system.message', { content: system.content }, 1),
              ],
            },
          ],
        },
      ],
    }),
    json({ traceId: 't', spanId: 's', name: 'chat', attributes: operation }),
  ].join('\n'),
  'Phoenix’s interface': json({
    data: [
      {
        ...{ name: 'chat', context: { trace_id: 't', span_id: 's' }, span_kind: 'LLM', parent_id: null },
        attributes: {
          ...openInference,
          'llm.tools.0.tool.json_schema': JSON.stringify(tools[0]),
          'llm.input_messages': chat.map((message) => ({ message })),
          'llm.output_messages': [{ message: answer }],
        },
      },
    ],
  }),
  'Phoenix’s table': json({
    ...{ name: 'chat', span_kind: 'LLM', parent_id: null, 'context.trace_id': 't', 'context.span_id': 's' },
    'attributes.agent.name': 'buyer',
    'attributes.llm.tools': [{ 'tool.json_schema': JSON.stringify(tools[0]) }],
    'attributes.llm.input_messages': [
      { 'message.role': 'system', 'message.content': system.content },
      { 'message.role': 'user', 'message.content': question.content },
      {
        'message.role': 'assistant',
        'message.tool_calls': [
          {
            'tool_call.id': 'c1',
            'tool_call.function.name': 'price',
            'tool_call.function.arguments': ARGUMENTS,
          },
        ],
      },
      { 'message.role': 'tool', 'message.content': '5', 'message.tool_call_id': 'c1' },
    ],
    'attributes.llm.output_messages': [{ 'message.role': 'assistant', 'message.content': '5' }],
  }),
  'nested attributes of OpenInference': json({
    ...{ traceId: 't', spanId: 's', name: 'chat' },
    attributes: {
      openinference: { span: { kind: 'LLM' } },
      agent: { name: 'buyer' },
      llm: {
        tools: [{ tool: { json_schema: JSON.stringify(tools[0]) } }],
        input_messages: chat.map((message) => ({ message })),
        output_messages: [{ message: answer }],
      },
    },
  }),
  'Langfuse’s export by table': json({
    ...{ id: 's', trace_id: 't', type: 'GENERATION', name: 'chat', start_time: '2026-01-01 00:00:01' },
    ...{ input: JSON.stringify({ messages: chat, tools }), output: JSON.stringify(answer) },
    ...{ metadata: { attributes: { 'gen_ai.agent.name': 'buyer' } }, usage_details: '{"input":1}' },
  }),
  'Braintrust’s attributes': json({
    ...{ traceId: 't', spanId: 's', name: 'chat' },
    attributes: {
      ...{ 'gen_ai.agent.name': 'buyer', 'gen_ai.tool.definitions': tools },
      'braintrust.span_attributes': '{"type":"llm"}',
      'braintrust.input_json': JSON.stringify(chat),
      'braintrust.output_json': JSON.stringify([{ index: 0, message: answer }]),
    },
  }),
};

const event = (name: string, body: object) => ({ 'event.name': name, ...body });
const messageEvents = (contentOf: (content: object) => object) => [
  event('gen_ai.system.message', contentOf({ content: system.content })),
  event('gen_ai.user.message', contentOf({ content: question.content })),
  event('gen_ai.assistant.message', contentOf({ tool_calls: [toolCall] })),
  event('gen_ai.tool.message', contentOf({ content: '5', id: 'c1' })),
];
const listed = (attributes: object) =>
  Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === 'string' ? { stringValue: value } : { arrayValue: { values: value } },
  }));
const inText = (each: unknown) => JSON.stringify(each);
const texts = (list: readonly object[]) => list.map((each) => ({ stringValue: inText(each) }));
const contents = { 'gen_ai.input.messages': inText(chat), 'gen_ai.output.messages': inText([answer]) };
const told = { ...operation, 'gen_ai.tool.definitions': inText(tools) };
const named = { traceId: 't', spanId: 's', name: 'chat' };

const tagsOf = (tags: object) => Object.entries(tags).map(([key, value]) => ({ key, type: 'string', value }));
const parentOf = (spanID: string) => ({ refType: 'CHILD_OF', traceID: 't', spanID });

/** The same messages in the ways in which exporters and stores write attributes. */
const ways: Readonly<Record<string, unknown>> = {
  'JSON of their JSON': {
    ...named,
    attributes: {
      ...told,
      'gen_ai.input.messages': inText(inText(chat)),
      'gen_ai.output.messages': inText(inText([answer])),
    },
  },
  'lists of JSON': {
    ...named,
    attributes: { ...told, 'gen_ai.input.messages': chat.map(inText), 'gen_ai.output.messages': [inText(answer)] },
  },
  'OTLP’s lists of JSON': {
    ...named,
    attributes: listed({ ...told, 'gen_ai.input.messages': texts(chat), 'gen_ai.output.messages': texts([answer]) }),
  },
  'attributes that are JSON': { ...named, attributes: inText({ ...told, ...contents }) },
  'attributes that are JSON of a list': { ...named, attributes: inText(listed({ ...told, ...contents })) },
  'a log alone': {
    ...{ traceId: 't', spanId: 's', eventName: 'gen_ai.client.inference.operation.details' },
    attributes: listed({ ...told, ...contents }),
  },
  'events in an attribute': {
    ...named,
    attributes: {
      ...told,
      events: inText([
        ...messageEvents((content) => content),
        event('gen_ai.choice', { index: 0, message: { content: answer.content } }),
      ]),
    },
  },
  'events of Strands': {
    ...named,
    attributes: told,
    events: [
      { name: 'gen_ai.system.message', attributes: { content: inText([{ text: system.content }]) } },
      { name: 'gen_ai.user.message', attributes: { content: inText([{ text: question.content }]) } },
      {
        name: 'gen_ai.assistant.message',
        attributes: { content: `[{"toolUse":{"toolUseId":"c1","name":"price","input":${ARGUMENTS}}}]` },
      },
      {
        name: 'gen_ai.tool.message',
        attributes: { content: inText([{ toolResult: { toolUseId: 'c1', content: [{ text: '5' }] } }]) },
      },
      { name: 'gen_ai.choice', attributes: { finish_reason: 'end_turn', message: inText([{ text: answer.content }]) } },
    ],
  },
  'the fields of Pydantic AI': [
    {
      ...named,
      parentSpanId: 'r',
      attributes: {
        ...{ 'gen_ai.operation.name': 'chat', ...contents },
        model_request_parameters: inText({
          function_tools: [{ name: 'price', parameters_json_schema: tools[0]?.parameters }],
          output_tools: [],
        }),
      },
    },
    { ...named, spanId: 'r', attributes: { agent_name: 'buyer', model_name: 'big' } },
  ],
  'events whose choice names no role': {
    ...named,
    attributes: told,
    events: [
      ...messageEvents((content) => content).map(({ 'event.name': name, ...attributes }) => ({ name, attributes })),
      { name: 'gen_ai.choice', attributes: { message: inText({ content: answer.content }), finish_reason: 'stop' } },
    ],
  },
  'Jaeger’s interface': {
    data: [
      {
        traceID: 't',
        spans: [
          {
            ...{
              traceID: 't',
              spanID: 's',
              operationName: 'chat',
              startTime: 1,
              logs: [],
              references: [parentOf('r')],
            },
            tags: tagsOf({ ...told, ...contents, 'gen_ai.agent.name': undefined }),
          },
          { traceID: 't', spanID: 'r', tags: tagsOf({ 'gen_ai.agent.name': 'buyer', 'span.kind': 'internal' }) },
        ],
      },
    ],
  },
  'Jaeger’s logs': {
    ...{ traceID: 't', spanID: 's', operationName: 'chat', tags: tagsOf(told) },
    logs: [{ timestamp: 1, fields: tagsOf({ event: 'gen_ai.client.inference.operation.details', ...contents }) }],
  },
  Zipkin: [
    { traceId: 't', id: 's', parentId: 'r', timestamp: 2, tags: { ...told, ...contents, 'gen_ai.agent.name': '' } },
    { traceId: 't', id: 'r', timestamp: 1, tags: { 'gen_ai.agent.name': 'buyer' } },
  ],
  'Tempo’s batches': {
    batches: [{ scopeSpans: [{ spans: [{ ...named, attributes: listed({ ...told, ...contents }) }] }] }],
  },
  'Tempo’s trace': {
    trace: {
      resourceSpans: [{ scopeSpans: [{ spans: [{ ...named, attributes: listed({ ...told, ...contents }) }] }] }],
    },
  },
};

describe('a call', () => {
  it.each(Object.entries(ways))('is read from %s', async (name, value) => {
    const file = join(root, 'way.json');
    await writeFile(file, inText(value));
    const out = join(root, `${name.replaceAll(/\W/g, '-')}-way`);
    const { unread } = await importTraces(file, {}, out);
    const rows = (await readFile(join(out, 'demonstrations.jsonl'), 'utf8')).trim().split('\n');
    const called = { role: 'assistant', content: '', toolCalls: [{ id: 'c1', name: 'price', arguments: ARGUMENTS }] };
    const result = { role: 'tool', content: '5', toolCallId: 'c1' };
    const messages = [system, question, called, result, answer];
    expect([rows.map((row) => JSON.parse(row)), unread]).toEqual([[{ agent: 'buyer', messages, tools }], {}]);
  });

  it.each(Object.entries(forms))('is read with all digits of its numbers in the form of %s', async (name, text) => {
    const file = join(root, `${name.replaceAll(/\W/g, '-')}.jsonl`);
    await writeFile(file, text);
    const out = join(root, `${name.replaceAll(/\W/g, '-')}-out`);
    const { unread } = await importTraces(file, {}, out);
    const [row, ...more] = (await readFile(join(out, 'demonstrations.jsonl'), 'utf8')).trim().split('\n');
    const called = { role: 'assistant', content: '', toolCalls: [{ id: 'c1', name: 'price', arguments: ARGUMENTS }] };
    const result = { role: 'tool', content: '5', toolCallId: 'c1' };
    expect(JSON.parse(row ?? '')).toEqual({
      agent: 'buyer',
      messages: [system, question, called, result, answer],
      tools,
    });
    expect([more, unread]).toEqual([[], {}]);
  });

  const node = { langgraph_node: 'agent', langgraph_checkpoint_ns: 'buyer:4f1c|agent:9b02' };
  const prefixed = (prefix: string, fields: object) =>
    Object.fromEntries(Object.entries(fields).map(([name, value]) => [prefix + name, value]));
  it.each<[string, object]>([
    ['LangSmith', prefixed('langsmith.metadata.', node)],
    ['LangSmith, with the name of the agent', prefixed('langsmith.metadata.', { ...node, lc_agent_name: 'buyer' })],
    ['Langfuse', prefixed('langfuse.observation.metadata.', node)],
    ['OpenLLMetry', prefixed('traceloop.association.properties.', { langgraph_node: 'buyer' })],
    ['OpenInference', { metadata: JSON.stringify(node) }],
  ])('is of the node of LangGraph in the metadata of %s, unless a span names an agent', async (_, metadata) => {
    const contents = { 'gen_ai.input.messages': json([question]), 'gen_ai.output.messages': json([answer]) };
    const attributes = { 'gen_ai.operation.name': 'chat', ...contents };
    const row = { traceId: 't', spanId: 's', name: 'chat', attributes: { ...attributes, ...metadata } };
    const around = { traceId: 't', spanId: 'r', name: 'run', attributes: { 'gen_ai.agent.name': 'clerk' } };
    const file = join(root, 'node.json');
    const agentsOf = async (...rows: object[]) => {
      await writeFile(file, JSON.stringify(rows));
      return Object.keys((await importTraces(file, { agent: 'nobody' })).agents);
    };
    expect(await agentsOf(row)).toEqual(['buyer']);
    for (const name of ['agent', 'model', 'model_request', 'call_model']) {
      const plain = { langgraph_node: name, langgraph_checkpoint_ns: `${name}:1` };
      const ofGraphsOwn = { ...attributes, ...prefixed('langsmith.metadata.', plain) };
      expect(await agentsOf({ ...row, attributes: ofGraphsOwn })).toEqual(['nobody']);
    }
    expect(await agentsOf(around, { ...row, parentSpanId: 'r' })).toEqual(['clerk']);
  });

  it('keeps null and bytes of OTLP’s typed values', async () => {
    const object = (fields: Readonly<Record<string, object>>) => ({
      kvlistValue: { values: Object.entries(fields).map(([key, value]) => ({ key, value })) },
    });
    const list = (...values: readonly object[]) => ({ arrayValue: { values } });
    const text = (stringValue: string) => ({ stringValue });
    const bytes = (content: string) => ({ bytesValue: Buffer.from(content).toString('base64') });
    const values = object({
      note: {},
      none: list(),
      fields: object({}),
      all: list({}, { boolValue: false }, text('')),
    });
    const part = object({ type: text('tool_call'), id: text('c1'), name: text('price'), arguments: values });
    const typedAttributes = {
      'gen_ai.operation.name': text('chat'),
      'gen_ai.agent.name': text('buyer'),
      'gen_ai.input.messages': list(object({ role: text('user'), content: bytes('3 figs, 2 €') })),
      'gen_ai.output.messages': list(object({ role: text('assistant'), parts: list(part) })),
      'gen_ai.tool.definitions': text(JSON.stringify(tools)),
    };
    const attributes = Object.entries(typedAttributes).map(([key, value]) => ({ key, value }));
    const file = join(root, 'typed.jsonl');
    await writeFile(
      file,
      JSON.stringify({ traceId: 't', spanId: 's', name: 'chat', attributes, events: [], links: [] }),
    );
    const { example, unread } = await importTraces(file);
    const written = '{"note":null,"none":[],"fields":{},"all":[null,false,""]}';
    expect(example?.messages).toEqual([
      { role: 'user', content: '3 figs, 2 €' },
      { role: 'assistant', content: '', toolCalls: [{ id: 'c1', name: 'price', arguments: written }] },
    ]);
    expect(unread).toEqual({});
  });

  it('keeps the digits of other numbers when one is masked, and those of a task', async () => {
    const secret = '{"to":"ann@example.com","number":2512292042121000001,"weight":1.0}';
    const file = join(root, 'masked.jsonl');
    const called = [{ role: 'assistant', tool_calls: [{ function: { name: 'price', arguments: secret } }] }];
    const task = `{"traceId":"t","spanId":"r","name":"order","attributes":{"drmas.task.data":${JSON.stringify(secret)}}}`;
    await writeFile(file, `${span(json([question]), json(called), ',"parentSpanId":"r"')}\n${task}`);
    const out = join(root, 'masked');
    await importTraces(file, {}, out);
    const masked = secret.replace('ann@example.com', '[e-mail address]');
    const [demonstrations, tasks] = await Promise.all(
      ['demonstrations', 'tasks'].map((each) => readFile(join(out, `${each}.jsonl`), 'utf8')),
    );
    expect(JSON.parse(demonstrations ?? '').messages.at(-1).toolCalls[0].arguments).toBe(masked);
    expect(tasks).toBe(`{"id":"t",${masked.slice(1)}\n`);
  });
});
