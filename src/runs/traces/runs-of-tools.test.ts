/** Rows as `langchain-core` 1.8.3, `mlflow-tracing` 3.17.2 and Opik made them, shortened, and older forms. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { temporaryRoot } from '../../../test/support/tiny-run.js';
import { importTraces } from './import-traces.js';

const root = temporaryRoot();
let folder: string;
let count = 0;
beforeEach(async () => {
  folder = join(root, String(count++));
  await mkdir(folder);
});

async function readTraces(rows: readonly unknown[], options: { agent?: string } = {}) {
  const path = join(folder, 'traces.jsonl');
  await writeFile(path, rows.map((row) => JSON.stringify(row)).join('\r\n'));
  const traces = await importTraces(path, options, join(folder, 'out'));
  const rowsOf = async (name: string) =>
    (await readFile(join(folder, 'out', name), 'utf8')).split('\n').flatMap((line) => (line ? [JSON.parse(line)] : []));
  return { ...traces, rows: await rowsOf('demonstrations.jsonl'), taskRows: await rowsOf('tasks.jsonl') };
}

const parameters = { type: 'object', properties: { fruit: { type: 'string' } }, required: ['fruit'] };
const price = { name: 'price', description: 'price of one', parameters };
const offered = [{ type: 'function', function: price }];
const fruit = '{"fruit":"fig"}';
const call = { id: 'c1', name: 'price', arguments: fruit };
const read = [
  { role: 'system', content: 'Say its price.' },
  { role: 'user', content: '3 fig' },
];
const called = { role: 'assistant', content: '', toolCalls: [call] };
const result = { role: 'tool', content: '5', toolCallId: 'c1' };
const demonstrations = [
  { agent: 'buyer', messages: [...read, called], tools: [price] },
  { agent: 'buyer', messages: [...read, called, result, { role: 'assistant', content: '5' }], tools: [price] },
];

/** A message as LangChain serializes it. */
const lc = (name: string, kwargs: object) => ({ lc: 1, type: 'constructor', id: ['langchain', name], kwargs });
const asked = [
  lc('SystemMessage', { content: 'Say its price.', type: 'system' }),
  lc('HumanMessage', { content: [{ type: 'text', text: '3 fig' }], type: 'human' }),
];
const calls = [{ name: 'price', args: { fruit: 'fig' }, id: 'c1', type: 'tool_call' }];
/** Anthropic's models have the call among the parts too. */
const calledPart = { type: 'tool_use', id: 'c1', name: 'price', input: { fruit: 'fig' } };
const generations = (content: unknown, more: object = {}) => ({
  generations: [[{ text: '', message: lc('AIMessage', { content, type: 'ai', ...more }) }]],
});
const usage = { usage_metadata: { input_tokens: 10, output_tokens: 5, total_tokens: 15 } };

const run = (id: string, fields: object) => ({
  ...{ id, trace_id: 'r', parent_run_id: 'a', run_type: 'llm', name: 'ChatOpenAI', tags: ['seq:step:1'] },
  ...{ start_time: `2026-11-27T17:02:01.57908${id}+00:00`, error: null, events: [{ name: 'start' }] },
  extra: { metadata: { ls_model_name: 'big-1' }, invocation_params: { tools: offered } },
  ...fields,
});
const around = [
  run('r', { run_type: 'chain', name: 'order', parent_run_id: null, inputs: { order: '3 fig' }, extra: {} }),
  run('a', { run_type: 'chain', name: 'buyer', parent_run_id: 'r', inputs: { x: 1 }, extra: {} }),
];
const first = run('1', {
  inputs: { messages: [asked] },
  outputs: generations([calledPart], { tool_calls: calls, ...usage }),
});
const history = [
  ...asked,
  lc('AIMessageChunk', { content: '', type: 'AIMessageChunk', tool_calls: calls }),
  lc('ToolMessage', { content: '5', type: 'tool', tool_call_id: 'c1', status: 'success' }),
];
const second = run('2', { inputs: { messages: [history] }, outputs: generations('5') });

describe('runs of LangSmith', () => {
  it('become demonstrations of the run around the call, and a task', async () => {
    const success = { success: { n: 1, avg: 1 }, note: { n: 1, avg: null } };
    const { rows, taskRows, agents, unread } = await readTraces([
      { ...around[0], feedback_stats: success },
      around[1],
      second,
      first,
    ]);
    expect(rows).toEqual(demonstrations);
    expect(taskRows).toEqual([{ id: 'r', order: '3 fig', score: 1 }]);
    expect(agents.buyer).toMatchObject({ models: ['big-1'], read: 10, written: 5 });
    expect(unread).toEqual({});
  });

  it.each(['each other', 'the reply of the interface'])('are read where they lie in %s', async (place) => {
    const [whole, agent] = around;
    const nested = { ...whole, child_runs: [{ ...agent, child_runs: [first, { ...second, child_runs: [] }] }] };
    const row = place === 'each other' ? nested : { runs: [...around, first, second] };
    expect((await readTraces([row])).rows).toEqual(demonstrations);
  });

  const ofModel = ['agent', 'model', 'model_request', 'call_model'];
  it.each(
    ofModel.flatMap((node) => [
      ['buyer', 'buyer:4f1c|', node],
      ['buyer', 'buyer:4f1c|agent:77aa|', node],
      ['nobody', 'agent:77aa|', node],
      ['nobody', '', node],
    ]),
  )('are of %s, the node around an agent of LangGraph, at %s%s', async (agent, place, node) => {
    const metadata = { ...first.extra.metadata, langgraph_node: node, langgraph_checkpoint_ns: `${place}${node}:9b02` };
    const inGraph = { ...first, extra: { ...first.extra, metadata } };
    const loop = { ...around[1], name: node };
    const { rows } = await readTraces([around[0], loop, inGraph], { agent: 'nobody' });
    expect(rows).toEqual([{ ...demonstrations[0], agent }]);
  });

  it('may have the bodies of an OpenAI client', async () => {
    const message = { role: 'assistant', content: null, tool_calls: [{ id: 'c1', type: 'function', function: call }] };
    const openai = run('1', {
      extra: {},
      inputs: { model: 'big-1', messages: read, tools: offered },
      outputs: { choices: [{ index: 0, message, finish_reason: 'tool_calls' }], ...usage },
    });
    const { rows, agents } = await readTraces([...around, openai]);
    expect(rows).toEqual(demonstrations.slice(0, 1));
    expect(agents.buyer).toMatchObject({ models: ['big-1'], read: 10, written: 5 });
  });

  it('may be rows of a bulk export, with objects as JSON', async () => {
    const texts = ({ inputs, outputs, extra, ...fields }: Readonly<Record<string, unknown>>) => {
      const [input, output, more] = [inputs, outputs, extra].map((part) => part && JSON.stringify(part));
      const stats = { error: '', feedback_stats: '{"success":{"avg":1}}' };
      return { ...fields, ...stats, inputs: input, outputs: output, extra: more };
    };
    const { rows, taskRows, agents } = await readTraces([...around, first, second].map(texts));
    expect(rows).toEqual(demonstrations);
    expect(taskRows).toEqual([{ id: 'r', order: '3 fig', score: 1 }]);
    expect(agents.buyer).toMatchObject({ models: ['big-1'], read: 10, written: 5 });
  });

  it('are counted by reason where they cannot be read', async () => {
    const { rows, unread } = await readTraces([
      ...around,
      first,
      run('3', { inputs: { messages: [[]] }, outputs: null, error: 'boom' }),
      run('4', { inputs: { prompts: ['Human: Hi'] }, outputs: { generations: [[{ text: 'old' }]] } }),
      run('5', { inputs: { messages: [asked] }, outputs: { generations: [[{ text: '1' }, { text: '2' }]] } }),
      run('6', { run_type: 'tool', name: 'price', inputs: { input: '' }, outputs: { output: '5' } }),
    ]);
    expect(rows).toHaveLength(2);
    expect(unread).toMatchObject({ failed: { count: 1 }, input: { count: 1 }, choice: { count: 1 } });
  });
});

describe('traces of MLflow', () => {
  const attributes = (type: string, inputs: unknown, outputs: unknown) => ({
    'mlflow.traceRequestId': '"tr-1"',
    'mlflow.spanType': JSON.stringify(type),
    'mlflow.spanInputs': JSON.stringify(inputs),
    'mlflow.spanOutputs': JSON.stringify(outputs),
  });
  const reply = (message: object) => ({ choices: [{ index: 0, message }] });
  const wireCall = { id: 'c1', type: 'function', function: { name: 'price', arguments: fruit } };
  const wire = [
    { role: 'assistant', content: null, tool_calls: [wireCall] },
    { role: 'tool', tool_call_id: 'c1', content: '5' },
  ];
  const parts = [
    ['buyer', attributes('AGENT', { order: '3 fig' }, { cost: 5 })],
    [
      'Completions',
      {
        ...attributes('CHAT_MODEL', { messages: read }, reply(wire[0] ?? {})),
        'mlflow.chat.tools': JSON.stringify(offered),
        'mlflow.chat.tokenUsage': '{"input_tokens": 10, "output_tokens": 5}',
      },
    ],
    ['price', attributes('TOOL', { fruit: 'fig' }, '5')],
    [
      'Completions',
      attributes(
        'CHAT_MODEL',
        { messages: [...read, ...wire], tools: offered },
        reply({ role: 'assistant', content: '5' }),
      ),
    ],
  ] as const;
  const spans = parts.map(([name, each], i) => ({
    ...{ name, trace_id: 'T90Ed1RZ', span_id: `s${i}`, parent_span_id: i === 0 ? null : 's0', attributes: each },
    ...{ start_time_unix_nano: `17957990336934${i}2033`, events: [], links: [] },
    status: { code: 'STATUS_CODE_UNSET', message: '' },
  }));
  const older = parts.map(([name, each], i) => ({
    ...{ name, context: { trace_id: '0xab', span_id: `0x${i}` }, parent_id: i === 0 ? null : '0x0', attributes: each },
    ...{ start_time: 1000 + i, events: [], status_code: 'OK' },
  }));
  const assessments = [
    { assessment_name: 'success', feedback: { value: true } },
    { assessment_name: 'rationale', feedback: { value: 'good' } },
    { assessment_name: 'price', expectation: { value: 5 } },
  ];

  it.each([
    ['of version 3', { info: { trace_id: 'tr-1', assessments }, data: { spans } }],
    ['of version 2', { info: { request_id: 'tr-1', assessments }, data: { request: '{}', spans: older } }],
    ['in a row of the table', { trace_id: 'tr-1', trace: '{}', spans, assessments, request: '{}' }],
    ['whose parts are texts', { info: JSON.stringify({ assessments }), data: JSON.stringify({ spans }) }],
  ])('%s become demonstrations and a task', async (_name, trace) => {
    const { rows, taskRows, agents, unread } = await readTraces([trace]);
    expect(rows).toEqual(demonstrations);
    expect(taskRows).toEqual([{ id: expect.any(String), order: '3 fig', score: 1 }]);
    expect(agents.buyer).toMatchObject({ read: 10, written: 5 });
    expect(unread).toEqual({ score: expect.objectContaining({ count: 1 }) }); // the rationale
  });
});

describe('a file of Opik', () => {
  const ofOpik = (id: string, fields: object) => ({
    ...{ id, trace_id: 't', parent_span_id: 'a', type: 'llm', name: 'chat', error_info: null },
    ...{ start_time: `2026-11-27T17:02:01.57908${id}+00:00`, feedback_scores: null },
    ...fields,
  });

  it('has its score, which counts, and its calls', async () => {
    const choices = [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: '5' } }];
    const input = { messages: [...read, called, result] };
    const metadata = { created_from: 'openai', tools: offered };
    const spans = [
      ofOpik('a', { parent_span_id: null, type: 'general', name: 'buyer', input: { order: '3 fig' } }),
      ofOpik('1', { input, output: { choices }, metadata, usage: { prompt_tokens: 10, completion_tokens: 5 } }),
      ofOpik('2', { input, output: { choices }, metadata, error_info: { exception_type: 'Timeout' } }),
    ];
    const trace = { id: 't', input: { order: '3 fig' }, feedback_scores: [{ name: 'success', value: 1 }] };
    const { rows, taskRows, agents, unread } = await readTraces([{ trace, spans }], { agent: 'buyer' });
    expect(agents.buyer).toMatchObject({ read: 10, written: 5 });
    expect(rows).toEqual(demonstrations.slice(1));
    expect(taskRows).toEqual([{ id: 't', order: '3 fig', score: 1 }]);
    expect(unread).toEqual({ failed: expect.objectContaining({ count: 1 }) });
  });
});
