import { mkdir, mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { RandomStream } from '@drmas/engine/math';
import { user } from '@drmas/engine/nouns';
import { nodeFiles } from '@drmas/engine/platform';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import { generateObject, stepCountIs, streamObject, ToolLoopAgent, tool } from 'ai';
import { MockLanguageModelV3, simulateReadableStream } from 'ai/test';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { drmas } from '../../../test/support/command-line.js';
import { registeredExporter } from '../../../test/support/otel-exporter.js';
import { processorSeconds } from '../../../test/support/time-and-chance.js';
import { digitTeam, temporaryRoot, tinyDefinition } from '../../../test/support/tiny-run.js';
import { readEpisodes } from '../../method/store/episode-files.js';
import { withDemonstrations } from '../../teams/tasks/files/demonstrations.js';
import { arithmetic } from '../../teams/tasks/generated/arithmetic.js';
import { agent } from '../../teams/team/agent.js';
import { defineTeam } from '../../teams/team/team.js';
import { train } from '../run/api.js';
import { playScripted } from '../testing/play-scripted.js';
import { LineFile, recordDemonstrations } from './demonstration-rows.js';
import { type ImportOptions, importTraces } from './import-traces.js';
import { NAMES, redaction } from './redact.js';

const root = temporaryRoot();
let folder: string;
let count = 0;
beforeEach(async () => {
  folder = join(root, String(count++));
  await mkdir(folder);
});

/** The result of an import, with the rows of its files. */
async function readTraces(path: string, options: ImportOptions = {}) {
  const out = join(folder, `out-${count++}`);
  const traces = await importTraces(path, options, out);
  const rowsOf = async (name: string) =>
    (await readFile(join(out, name), 'utf8')).split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
  return { ...traces, demonstrations: await rowsOf('demonstrations.jsonl'), tasks: await rowsOf('tasks.jsonl') };
}

async function fileOf(rows: readonly unknown[] | string | Buffer): Promise<string> {
  const path = join(folder, 'traces.jsonl');
  const isWritten = typeof rows === 'string' || Buffer.isBuffer(rows);
  await writeFile(path, isWritten ? rows : rows.map((row) => JSON.stringify(row)).join('\n'));
  return path;
}

const price = {
  name: 'price',
  description: 'price of one',
  parameters: {
    type: 'object',
    properties: { fruit: { type: 'string' } },
    required: ['fruit'],
    additionalProperties: false,
  },
};
const call = { id: 'c1', name: 'price', arguments: '{"fruit":"fig"}' };
const read = [
  { role: 'system', content: 'Say its price.' },
  { role: 'user', content: '3 fig' },
];
const called = { role: 'assistant', content: '', toolCalls: [call] };
const result = { role: 'tool', content: '5', toolCallId: 'c1' };
/** The rows that every producer's spans of the same two calls become. */
const rows = [
  { agent: 'buyer', messages: [...read, called], tools: [price] },
  { agent: 'buyer', messages: [...read, called, result, { role: 'assistant', content: '5' }], tools: [price] },
];

/** A call of AI SDK 7, copied by hand from the spans that `ai` 7.0.173 made with `@ai-sdk/otel` 1.0.173. */
const sdk7 = (id: string, input: unknown, output: unknown) => ({
  traceId: 't1',
  spanId: id,
  parentSpanId: 'agent',
  name: 'chat big-1',
  startTime: [1, Number(id)],
  attributes: {
    'gen_ai.operation.name': 'chat',
    'gen_ai.request.model': 'big-1',
    'gen_ai.system_instructions': '[{"type":"text","content":"Say its price."}]',
    'gen_ai.input.messages': JSON.stringify(input),
    'gen_ai.output.messages': JSON.stringify([{ role: 'assistant', parts: output, finish_reason: 'stop' }]),
    'gen_ai.tool.definitions': JSON.stringify([
      { type: 'function', name: 'price', description: 'price of one', inputSchema: price.parameters },
    ]),
    'gen_ai.usage.input_tokens': 10,
    'gen_ai.usage.output_tokens': 5,
  },
});
const question = { role: 'user', parts: [{ type: 'text', content: '3 fig' }] };
const callPart = { type: 'tool_call', id: 'c1', name: 'price', arguments: { fruit: 'fig' } };
const answered = [
  question,
  { role: 'assistant', parts: [callPart] },
  { role: 'tool', parts: [{ type: 'tool_call_response', id: 'c1', response: '5' }] },
];
const around = {
  traceId: 't1',
  spanId: 'agent',
  name: 'invoke_agent big-1',
  startTime: [0, 9],
  attributes: { 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': 'buyer', 'drmas.success': 1 },
};
const ofSdk7 = [sdk7('2', answered, [{ type: 'text', content: '5' }]), sdk7('1', [question], [callPart]), around];

/** The spans in OTLP's JSON, in which attributes are a list of typed values. */
const otlp = (spans: readonly { readonly attributes: object; readonly startTime: readonly number[] }[]) => ({
  resourceSpans: [
    {
      scopeSpans: [
        {
          spans: spans.map(({ attributes, startTime: [, nanos], ...span }) => ({
            ...span,
            startTimeUnixNano: String(nanos),
            attributes: Object.entries(attributes).map(([key, value]) => ({
              key,
              value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value },
            })),
          })),
        },
      ],
    },
  ],
});

/** The same spans with the lists that exporters of OpenTelemetry write beside the attributes. */
const withLists = <S extends object>(spans: readonly S[]) =>
  spans.map((span, i) => ({
    ...span,
    links: [],
    events: i === 0 ? [] : [{ name: 'exception', timeUnixNano: '1', attributes: [] }],
  }));

const CONTENTS = ['gen_ai.input.messages', 'gen_ai.output.messages', 'gen_ai.system_instructions'];

/** The same spans with their messages in an event, as the conventions allow. */
const contentsInEvents = (ofSdk7 as readonly { readonly attributes: Readonly<Record<string, unknown>> }[]).map(
  (span) => {
    const entries = Object.entries(span.attributes);
    const [inside, outside] = [true, false].map((side) =>
      Object.fromEntries(entries.filter(([key]) => CONTENTS.includes(key) === side)),
    );
    const events = [{ name: 'gen_ai.client.inference.operation.details', attributes: inside }];
    return { ...span, attributes: outside, events };
  },
);

/** The same two calls with an event for each message, as older conventions have it. */
const messageEvents = () => {
  const call = (id: string, events: readonly object[]) => {
    const { attributes, ...span } = sdk7(id, [], []);
    const rest = Object.fromEntries(Object.entries(attributes).filter(([key]) => !CONTENTS.includes(key)));
    return { ...span, attributes: rest, events };
  };
  const event = (kind: string, attributes: object) => ({ name: `gen_ai.${kind}`, attributes });
  const start = read.map(({ role, content }) => event(`${role}.message`, { content }));
  const calls = { tool_calls: JSON.stringify(openAi.call.tool_calls) };
  const content = (value: object) => ({ 'gen_ai.event.content': JSON.stringify(value) });
  return [
    call('1', [...start, event('choice', content({ index: 0, finish_reason: 'tool_calls', message: openAi.call }))]),
    call('2', [
      ...start,
      event('assistant.message', calls),
      event('tool.message', { id: 'c1', content: '5' }),
      event('choice', { message: JSON.stringify({ role: 'assistant', content: '5' }) }),
    ]),
    around,
  ];
};

const openAi = {
  call: {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'c1', type: 'function', function: { name: 'price', arguments: call.arguments } }],
  },
  result: { role: 'tool', tool_call_id: 'c1', content: '5' },
  tools: [{ type: 'function', function: price }],
};

const observation = (id: string, startTime: string, input: unknown, output: unknown) => ({
  id,
  traceId: 't1',
  type: 'GENERATION',
  name: 'llm',
  startTime,
  parentObservationId: 'a',
  model: 'big-1',
  input,
  output,
  usageDetails: { input: 10, output: 5 },
  metadata: { attributes: { 'gen_ai.tool.definitions': JSON.stringify(openAi.tools) } },
});
const langfuse = {
  id: 't1',
  name: 'order',
  input: { order: '3 fig' },
  output: '5',
  scores: [{ name: 'correct', value: 1, dataType: 'BOOLEAN' }],
  observations: [
    observation('g2', '2026-01-01T00:00:02Z', [...read, openAi.call, openAi.result], {
      role: 'assistant',
      content: '5',
    }),
    observation('g1', '2026-01-01T00:00:01Z', read, openAi.call),
    {
      id: 'a',
      traceId: 't1',
      type: 'AGENT',
      name: 'buyer',
      startTime: '2026-01-01T00:00:00Z',
      input: '3 fig',
      output: '5',
    },
  ],
};

/** The page of Langfuse saves metadata as JSON. */
const besideObservations = ({ observations, ...trace }: typeof langfuse) => {
  const written = (each: object) => ('metadata' in each ? { ...each, metadata: JSON.stringify(each.metadata) } : each);
  return { trace, observations: observations.map(written) };
};

const logRow = (span_id: string, start: number, span_attributes: object, more: object) => ({
  ...{
    id: span_id,
    span_id,
    root_span_id: 'r',
    span_parents: span_id === 'r' ? null : span_id === 'a' ? ['r'] : ['a'],
  },
  span_attributes,
  metrics: { start, prompt_tokens: 10, completion_tokens: 5 },
  ...more,
});
const braintrust = [
  logRow('r', 1, { name: 'order', type: 'task' }, { input: { order: '3 fig' }, output: '5', scores: { correct: 1 } }),
  logRow('a', 2, { name: 'buyer', type: 'task' }, { input: '3 fig' }),
  logRow(
    'l2',
    4,
    { name: 'chat', type: 'llm' },
    {
      input: [...read, openAi.call, openAi.result],
      output: [{ message: { role: 'assistant', content: '5' } }],
      metadata: { model: 'big-1', tools: openAi.tools },
    },
  ),
  logRow(
    'l1',
    3,
    { name: 'chat', type: 'llm' },
    { input: read, output: [{ message: openAi.call }], metadata: { model: 'big-1', tools: openAi.tools } },
  ),
];

/** A span as an exporter of JSON lines writes it. */
const writtenSpan = (span: ReadableSpan) => ({
  name: span.name,
  attributes: span.attributes,
  startTime: span.startTime,
  spanContext: span.spanContext(),
  parentSpanContext: span.parentSpanContext,
});

describe('traces', () => {
  it.each([
    ['AI SDK 7, a span a line', `\ufeff${ofSdk7.map((span) => JSON.stringify(span)).join('\r\n')}`, 'success'],
    ['OTLP JSON on several lines', `\ufeff${JSON.stringify(otlp(ofSdk7), null, 2)}`, 'success'],
    ['spans with lists of events', withLists(ofSdk7), 'success'],
    ['OTLP JSON with lists of events', JSON.stringify(otlp(withLists(ofSdk7))), 'success'],
    ['spans with their messages in an event', contentsInEvents, 'success'],
    ['spans with an event for each message', messageEvents(), 'success'],
    ['a trace of Langfuse', [langfuse], 'correct'],
    ['a trace that the page of Langfuse saves', [besideObservations(langfuse)], 'correct'],
    [
      'observations of Langfuse with lists of events',
      [{ ...langfuse, observations: withLists(langfuse.observations) }],
      'correct',
    ],
    ['a batch of logs of Braintrust', [{ events: withLists(braintrust) }], 'correct'],
    ['logs of Braintrust', braintrust, 'correct'],
  ])('of %s become the same demonstrations', async (_, content, score) => {
    const traces = await readTraces(await fileOf(content), { minScore: 1 });
    expect(traces.demonstrations).toEqual(rows);
    expect(traces).toMatchObject({ score, traces: { all: 1, kept: 1, scored: 1, mean: 1 }, dropped: 0 });
    expect(traces.agents).toEqual({
      buyer: { calls: 2, demonstrations: 2, tools: ['price'], models: ['big-1'], read: 20, written: 10 },
    });
    const input = score === 'success' ? { question: '3 fig', answer: '5' } : { order: '3 fig' };
    expect(traces.tasks).toEqual([{ id: expect.any(String), ...input, score: 1 }]);
  });

  it("of AI SDK's own telemetry become demonstrations that a warm start reads", async () => {
    const exporter = registeredExporter();
    const usage = {
      inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
      outputTokens: { total: 5, text: 5, reasoning: 0 },
    };
    const model = new MockLanguageModelV3({
      modelId: 'big-1',
      doGenerate: async ({ prompt }) => ({
        content:
          prompt.at(-1)?.role === 'tool'
            ? [{ type: 'text', text: '5' }]
            : [{ type: 'tool-call', toolCallId: 'c1', toolName: 'price', input: call.arguments }],
        finishReason: { unified: 'stop', raw: 'stop' },
        usage,
        warnings: [],
      }),
    });
    const buyer = new ToolLoopAgent({
      model,
      instructions: 'Say its price.',
      stopWhen: stepCountIs(4),
      tools: {
        price: tool({ description: 'price of one', inputSchema: z.object({ fruit: z.string() }), execute: () => '5' }),
      },
      experimental_telemetry: { isEnabled: true, functionId: 'buyer' },
    });
    await buyer.generate({ prompt: '3 fig' });
    const path = await fileOf(exporter.getFinishedSpans().map(writtenSpan));
    const named = rows.map((row) => ({
      ...row,
      messages: row.messages.map((message) => (message.role === 'tool' ? { ...message, name: 'price' } : message)),
    }));
    expect((await readTraces(path)).demonstrations).toEqual(named);

    const out = join(folder, 'out');
    expect(await drmas(['import', path, '--out', out, '--yes'])).toMatchObject({ code: 0 });
    const { trace: _, ...tasks } = arithmetic();
    const source = withDemonstrations(tasks, join(out, 'demonstrations.jsonl'));
    await source.load('train');
    const drawn = Array.from({ length: 20 }, (_, i) => source.trace?.(new RandomStream('draw', i), 'train'));
    expect(new Set(drawn.map((each) => each?.response))).toEqual(new Set(['', '5']));
  });

  it('of objects that AI SDK generates, at once and as a stream, with the events that it records', async () => {
    const exporter = registeredExporter();
    const usage = {
      inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
      outputTokens: { total: 5, text: 5, reasoning: 0 },
    };
    const finishReason = { unified: 'stop', raw: 'stop' } as const;
    const city = '{"city":"Oslo"}';
    const model = new MockLanguageModelV3({
      modelId: 'big-1',
      doGenerate: async () => ({ content: [{ type: 'text', text: city }], finishReason, usage, warnings: [] }),
      doStream: async () => ({
        stream: simulateReadableStream({
          chunks: [
            { type: 'text-start', id: '1' },
            { type: 'text-delta', id: '1', delta: city },
            { type: 'text-end', id: '1' },
            { type: 'finish', finishReason, usage },
          ],
        }),
      }),
    });
    const asked = {
      model,
      schema: z.object({ city: z.string() }),
      prompt: 'To Oslo.',
      experimental_telemetry: { isEnabled: true, functionId: 'reader' },
    };
    await generateObject(asked);
    const streamed = streamObject(asked);
    for await (const _ of streamed.partialObjectStream); // the object is there once its stream has been read
    await streamed.object;
    const spans = exporter.getFinishedSpans();
    const path = await fileOf(spans.map((span) => ({ ...writtenSpan(span), events: span.events, links: span.links })));
    const row = {
      agent: 'reader',
      messages: [
        { role: 'user', content: 'To Oslo.' },
        { role: 'assistant', content: city },
      ],
    };
    expect((await readTraces(path)).demonstrations).toEqual([row, row]);
  });

  it("of drmas's own tracker become what the run played, with its tasks and rewards", { tags: 'verify' }, async () => {
    const exporter = registeredExporter();
    vi.stubEnv('OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT', 'true');
    const run = join(folder, 'run');
    await train(tinyDefinition({ team: digitTeam }), { run, threads: 1, track: ['otel'], set: ['training.steps=1'] });
    vi.unstubAllEnvs();
    const played = await readEpisodes(nodeFiles, join(run, 'episodes', 'step-000001.jsonl'));
    const path = await fileOf(exporter.getFinishedSpans().map(writtenSpan));
    const traces = await readTraces(path, { score: 'reward' });
    const file = join(folder, 'recorded.jsonl');
    const withAll = played.map(({ turns, ...episode }) => ({
      ...episode,
      // An answer that a limit cut off is no demonstration, unless the limit is a few tokens.
      turns: turns
        .filter(({ finishReason, response }) => finishReason === 'stop' || response.length <= 8)
        .map((turn) => ({ ...turn, valid: true })),
    }));
    await recordDemonstrations(file, withAll as never);
    const recorded = (await readFile(file, 'utf8')).trim().split('\n');
    const imported = traces.demonstrations.map((row) => JSON.stringify(row));
    const answered = recorded.filter((row) => JSON.parse(row).messages.at(-1).content !== '');
    expect(answered.length).toBeGreaterThan(10);
    for (const row of answered) expect(imported).toContain(row);
    expect(traces.tasks).toContainEqual(
      expect.objectContaining({ ...(played[0]?.task.data as object), score: played[0]?.score.team }),
    );
  });

  it('keep what a score allows, and lose secrets and what the redaction takes out', async () => {
    const key = ['sk', 'proj', 'a1b2c3d4e5f6g7h8i9j0'].join('-');
    const secret = {
      role: 'user',
      parts: [{ type: 'text', content: `I am ann@example.com, ${key}, 4111 1111 1111 1111` }],
    };
    const other = (id: string, spans: readonly object[]) => spans.map((span) => ({ ...span, traceId: id }));
    const path = await fileOf([
      ...ofSdk7,
      ...other('t2', [
        sdk7('1', [secret], [{ type: 'text', content: 'Hello Ann' }]),
        { ...around, attributes: { ...around.attributes, 'drmas.success': 0.5 } },
      ]),
      { traceId: 't2', name: 'helpful', value: 0.9 },
    ]);
    const all = await readTraces(path, { rename: { buyer: 'clerk' } });
    expect(all.demonstrations[2]).toMatchObject({
      agent: 'clerk',
      messages: [{}, { content: 'I am [e-mail address], [API key], [card number]' }, {}],
    });
    expect(all.masked).toMatchObject({ 'e-mail address': 2, 'API key': 2, 'card number': 2 });
    expect((await readTraces(path, { minScore: 0.6 })).demonstrations).toEqual(rows);
    expect((await readTraces(path, { score: 'helpful', minScore: 0.6 })).demonstrations).toHaveLength(1);
    const redact = (text: string) => (text.includes('Ann') ? undefined : text.replace('fig', 'fruit'));
    const redacted = await readTraces(path, { redact });
    expect(redacted).toMatchObject({ dropped: 1, droppedTasks: 1, tasks: [{ id: 't1', question: '3 fruit' }] });
    expect(JSON.stringify(redacted.demonstrations)).not.toMatch(/fig|Ann/);
  });

  const key = 'a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6q7r8';
  const letters = 'AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh';
  const pem = (kind: string) => `-----${kind} RSA PRIVATE KEY-----`;
  it.each([
    ['DB_PASSWORD=hunter2hunter2', 'DB_PASSWORD=[password]'],
    ['OPENAI_API_KEY=abcd1234efgh5678', 'OPENAI_API_KEY=[password]'],
    ['clientSecret: abcdefgh, ok', 'clientSecret: [password], ok'],
    ['aws_secret_access_key=wJalrXUt/K7MD+bPx', 'aws_secret_access_key=[password]'],
    ['?access_token=abcdefgh token: abcd1234', '?access_token=[password] token: [password]'],
    ['My API key: abcdefgh Uid=sa;Pwd=hunter2', 'My API key: [password] Uid=sa;Pwd=[password]'],
    ['password: "two words, here"!', 'password: "[password]"!'],
    [String.raw`{"password":"a\"b c","n":1}`, '{"password":"[password]","n":1}'],
    [String.raw`"{\"api_key\":\"abcdef\",\"n\":1}"`, String.raw`"{\"api_key\":\"[password]\",\"n\":1}"`],
    ['Authorization: Basic dXNlcjpwYXNz', 'Authorization: Basic [password]'],
    ['curl -H "basic dXNlcjpwYXNz"', 'curl -H "basic [password]"'],
    ['postgres://user:s3cret@pw@localhost/x', 'postgres://user:[password]@localhost/x'],
    [`hf_${letters}, npm_${key}, api_key="ghp_${letters}"`, '[API key], [API key], api_key="[API key]"'],
    [`sk_live_${key} glpat-${letters}`, '[API key] [API key]'],
    [`at-eyJ${key}.${letters}.x_y`, 'at-[token]'],
    [`${pem('BEGIN')}\nA: 4,B-C\n\n${key}==\n${pem('END')}.`, '[private key].'],
    [String.raw`${pem('BEGIN')}\nA: 4\n\n${key}\nAb= x`, '[private key] x'],
    ...[
      'The password of the door is known to the secretary, and a token of thanks: 12 roses.',
      'max_tokens=128000, tokens: 100000000, next token: therefore, PWD=/home/ann',
      'Basic understanding of https://example.com:8080/a and skeleton-keys-of-the-2nd-door',
      'npm_config_user_agent, hf_model_name_or_path, ghostwriters-association, sk-learn-without-numbers',
      'pneumonoultramicroscopicsilicovolcanoconiosis@home -----BEGIN PRIVATE KEY-----',
    ].map((text) => [text, text]),
  ])('lose secrets of a fixed form, and nothing else: %s', (text, stored) => {
    expect(redaction({})({ text }, NAMES)).toEqual({ text: stored });
  });

  it('lose secrets in fields of a task by the names of the fields, and in these names', () => {
    const task = { password: 481, n: { api_key: 'abcdef', tokens: 'abcdef' }, secret: 'elephant', id: 12345678901237 };
    const [masked, card] = [{}, 4111111111111111];
    expect(redaction(masked)({ ...task, 'ann@a.com': 1, 'bob@b.com': card, text: `{"a": ${card}}` }, NAMES)).toEqual({
      ...{ ...task, password: '[password]', n: { api_key: '[password]', tokens: 'abcdef' } },
      ...{ '[e-mail address]': 1, '[e-mail address] 5': '[card number]', text: '{"a":"[card number]"}' },
    });
    expect(masked).toEqual({ password: 2, 'e-mail address': 2, 'card number': 2 });
  });

  it.each([
    ...['eyJ-', 'eyJaaaaaaaa.', 'a.', 'a@', '-----BEGIN PRIVATE KEY-----\n', '-----BEGIN ', '-a', '1 ', '+1', 'sk-a'],
    ...[
      'password',
      'password-',
      'password: ',
      'password="',
      "password='\\",
      'a_token',
      '://',
      '://a:',
      'Basic ',
      '\\"',
    ],
  ])('are masked in time that grows with their length: %s', async (piece) => {
    const seconds = await processorSeconds(() => {
      for (const text of [piece.repeat(3e5 / piece.length), piece + ' '.repeat(2e5), piece + 'a'.repeat(2e5)])
        redaction({})({ text }, NAMES);
    });
    expect(seconds).toBeLessThan(2);
  });

  it('lose secrets in fields of a task that are called like names of a message', async () => {
    const task = { id: 'order 7', name: 'ann@example.com', customer: { id: 'bob@example.com' } };
    const whole = { ...around, attributes: { ...around.attributes, 'drmas.task.data': JSON.stringify(task) } };
    const { tasks } = await readTraces(await fileOf([...ofSdk7.slice(0, -1), whole]));
    const masked = { name: '[e-mail address]', customer: { id: '[e-mail address]' } };
    expect(tasks).toEqual([{ id: 'order 7', ...masked, score: 1 }]);
  });

  it('read a span once that was exported twice', async () => {
    const traces = await readTraces(await fileOf([...ofSdk7, ...ofSdk7]));
    expect(traces).toMatchObject({ agents: { buyer: { calls: 2, read: 20 } }, unread: {} });
  });

  it.each([
    ['{"a": 1}\n{', {}, /found no spans: .*1 lines that are no JSON \(.*traces\.jsonl:2\); 1 rows that are no span/],
    [Buffer.from('caf\xe9', 'latin1'), {}, /traces\.jsonl: expected UTF-8 text/],
    [gzipSync('{"a": 1}'), {}, /traces\.jsonl: is packed with gzip: unpack it first/],
    ['{"a": 1}', {}, /found no spans: expected OTLP JSON/],
    [JSON.stringify(around), {}, /found 1 spans and no call of a model with its messages/],
    [JSON.stringify([sdk7('1', [question], [callPart])]), {}, /a call names no agent: --agent gives its name/],
    [
      JSON.stringify(ofSdk7).replaceAll('"buyer"', '"the buyer"'),
      {},
      /no team can have an agent 'the buyer': --rename/,
    ],
    [
      JSON.stringify(ofSdk7),
      { rename: { buyer: 'clerk', byer: 'b' } },
      /no call has the agent 'byer'; did you mean 'buyer'/,
    ],
    [JSON.stringify(ofSdk7), { score: 'x' }, /no trace has the score 'x'; they have the scores success/],
    [
      JSON.stringify([langfuse, { ...langfuse, scores: [{ name: 'b', value: 1 }] }]),
      { minScore: 1 },
      /name the score that counts with --score/,
    ],
  ])('are refused with the reason in %s', async (text, options, message) => {
    const path = await fileOf(text);
    await expect(readTraces(path, options)).rejects.toThrow(message);
  });
});

describe('drmas import', () => {
  it.each([
    ['throw new Error("boom")', /redact\.mjs cannot be loaded: boom/],
    ['export default 3', /redact\.mjs: expected a function \(text\) => string/],
    ['export default () => { throw new Error("boom") }', /redact\.mjs: the function throws: boom/],
    ['export default async (text) => text', /redact\.mjs: .* got a promise: the function may not be async/],
    ['export default () => 5', /redact\.mjs: expected the function to return a text, or undefined .*, got 5/],
    ['export default () => null', /got null/],
  ])('refuses the redaction %s', async (text, message) => {
    const file = join(await mkdtemp(join(folder, 'redact-')), 'redact.mjs');
    await writeFile(file, text);
    const { code, err } = await drmas(['import', await fileOf(ofSdk7), '--redact', file]);
    expect({ code, err }).toEqual({ code: 2, err: expect.stringMatching(message) });
  });

  it('shows what it keeps, writes only when told to, also into a pipe, and overwrites nothing', async () => {
    const path = await fileOf(ofSdk7);
    const out = join(folder, 'data');
    expect((await drmas(['import', path, '--out', out])).out).toMatch(/nothing was written; add --yes/);
    const preview = await drmas(['import', path, '--out', out], { screen: true });
    expect(preview.out).toMatch(/traces +1, 1 of them become demonstrations/);
    expect(preview.out).toMatch(/buyer +2 +2 +20 +10 +big-1 +price/);
    expect(preview.out).toMatch(/buyer -> price\(\{"fruit":"fig"\}\)/);
    expect(preview.out).toMatch(/nothing was written; add --yes to write/);
    await expect(readdir(out)).rejects.toThrow('ENOENT');
    expect(await drmas(['import', path, '--out', out, '--yes'], { screen: true })).toMatchObject({ code: 0 });
    expect(await readdir(out)).toEqual(['demonstrations.jsonl', 'tasks.jsonl']);
    expect(await drmas(['import', path, '--out', out, '--yes'])).toMatchObject({
      code: 2,
      err: expect.stringMatching(/demonstrations\.jsonl exists; choose another folder/),
    });
    expect(JSON.parse((await drmas(['import', path, '--dry-run', '--json'])).out)).toMatchObject({
      type: 'import',
      demonstrations: 2,
      tasks: 1,
    });
  });
});

describe('recordDemonstrations', () => {
  it('writes the reasoning that an agent read in earlier messages, for withDemonstrations to read', async () => {
    const said = [user('1+1'), { role: 'assistant', content: '2', reasoning: 'Add.' } as const, user('Sure?')];
    const team = defineTeam({
      task: z.object({}),
      agents: { solver: agent() },
      play: ({ agents: { solver } }) => solver(said),
      reward: () => 1,
    });
    const file = join(folder, 'demonstrations.jsonl');
    await recordDemonstrations(file, [await playScripted(team, {}, { solver: ['Yes.'] })]);
    const { trace: _, ...tasks } = arithmetic();
    const source = withDemonstrations(tasks, file);
    await source.load('train');
    expect(source.trace?.(new RandomStream('draw'), 'train')).toMatchObject({ messages: said, response: 'Yes.' });
  });

  it('makes demonstrations with tools of transcripts, for agents with and without a system prompt', async () => {
    const { name, description, parameters } = price;
    const team = defineTeam({
      task: z.object({ order: z.string() }),
      agents: { buyer: agent({ tools: 'plain' }), cashier: agent({ system: 'Write the sum.' }) },
      async play({ task, agents: { buyer, cashier } }) {
        const first = await buyer(read as never, { tools: [{ name, description, parameters }] });
        const { text } = await cashier(task.order);
        return { calls: first.toolCalls, text };
      },
      reward: ({ outcome }) => outcome.text === '15',
    });
    const toolCalls = [{ name: 'price', arguments: { fruit: 'fig' } }];
    const good = await playScripted(team, { order: '3 fig' }, { buyer: [{ toolCalls }], cashier: ['15'] });
    const bad = await playScripted(team, { order: '3 fig' }, { buyer: [{ toolCalls }], cashier: ['16'] });
    const file = join(folder, 'demonstrations.jsonl');
    expect(await recordDemonstrations(file, [good, bad], { minScore: 1 })).toBe(2);
    const [buyer, cashier] = (await readFile(file, 'utf8'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(buyer).toMatchObject({
      agent: 'buyer',
      messages: [...read, { toolCalls: [{ name: 'price', arguments: call.arguments }] }],
      tools: [price],
    });
    const texts = cashier.messages.map(({ content }: { content: string }) => content);
    expect(texts).toEqual(['Write the sum.', '3 fig', '15']);
    const { trace: _, ...tasks } = arithmetic();
    await withDemonstrations(tasks, file).load('train');
    await expect(recordDemonstrations(file, [good])).rejects.toThrow(/exists; demonstrations need a new file/);
    await expect(recordDemonstrations(join(folder, 'none.jsonl'), [bad], { minScore: 1 })).rejects.toThrow(
      /no valid turn is left of 1 episodes/,
    );
  });
});

describe('files of rows', () => {
  const path = (name: string) => join(folder, name);
  const fileOf = async (name: string, rows: readonly object[]) => {
    const file = await LineFile.create(path(name));
    for (const row of rows) await file.add(row);
    return file;
  };

  it('are all there or none, whatever fails, and nothing is half-written', async () => {
    const cyclic: Record<string, unknown> = {};
    cyclic.self = cyclic;
    const first = await fileOf('a', [{ row: 1 }]);
    await expect(first.add(cyclic)).rejects.toThrow();
    expect((await readdir(folder)).map((name) => name.slice(0, 5))).toEqual(['.tmp-']); // as a kill would leave it
    await LineFile.discard(first);
    const both = [await fileOf('a', [{ row: 1 }]), await fileOf('b', [{ row: 2 }])];
    await writeFile(path('b'), 'mine');
    await expect(LineFile.keep(...both)).rejects.toThrow(/b cannot be written: it exists/);
    expect(await readdir(folder)).toEqual(['b']);
    await expect(LineFile.create(path('b'))).rejects.toThrow(/it exists/);
    expect(await readFile(path('b'), 'utf8')).toBe('mine');
    await LineFile.keep(await fileOf('a', [{ row: 1 }, { row: 2 }]), await fileOf('c', []));
    expect(await readFile(path('a'), 'utf8')).toBe('{"row":1}\n{"row":2}\n');
    expect(await readdir(folder)).toEqual(['a', 'b', 'c']);
  });
});
