import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { drmas } from '../../../test/support/command-line.js';
import { temporaryRoot } from '../../../test/support/tiny-run.js';
import { importTraces } from './import-traces.js';
import { jsonOf } from './span-fields.js';
import { UNREAD, type UnreadReason } from './unread.js';

const root = temporaryRoot();
let folder: string;
let count = 0;
beforeEach(async () => {
  folder = join(root, String(count++));
  await mkdir(folder);
});

type Fields = Readonly<Record<string, unknown>>;
const messages = (content: unknown) => JSON.stringify([{ role: 'user', parts: content }]);
const text = [{ type: 'text', content: 'Hi' }];
const answer = JSON.stringify([{ role: 'assistant', parts: [{ type: 'text', content: 'Hello' }] }]);

/** A call in a trace of its own. */
const callIn = (trace: string, attributes: Fields, span: Fields = {}) => ({
  ...{ traceId: trace, spanId: `${trace} 1`, name: 'chat' },
  attributes: {
    ...{ 'gen_ai.operation.name': 'chat', 'gen_ai.agent.name': 'greeter' },
    ...{ 'gen_ai.input.messages': messages(text), 'gen_ai.output.messages': answer },
    ...attributes,
  },
  ...span,
});
const odd = (attributes: Fields, span?: Fields) => callIn('odd', attributes, span);
const input = (list: unknown) => ({ 'gen_ai.input.messages': typeof list === 'string' ? list : JSON.stringify(list) });
const output = (parts: unknown) => ({ 'gen_ai.output.messages': JSON.stringify([{ role: 'assistant', parts }]) });
const toolCall = { type: 'tool_call', id: 'c', name: 'price', arguments: {} };
const reply = (content: string) => ({ role: 'assistant', parts: [{ type: 'text', content }] });

/** An object whose fields have the names of the methods that conversions to text and to numbers call. */
const odder: unknown = JSON.parse('{"toString":1,"valueOf":2,"constructor":3,"__proto__":{"toString":4}}');

/** Rows that each reason must count: one of them is in a file after a call that can be read. */
const unreadable: Readonly<Record<Exclude<UnreadReason, 'file'>, readonly unknown[]>> = {
  line: ['{"traceId":', 'plain text', `[${'['.repeat(600)}`],
  deep: [
    `[${'['.repeat(600)}${']'.repeat(600)}]`,
    `${'{"id":"r","run_type":"chain","child_runs":['.repeat(300)}${']}'.repeat(300)}`, // more than drmas reads
    odd({ 'gen_ai.input.messages': `${'{"input":'.repeat(40)}[]${'}'.repeat(40)}` }),
  ],
  row: [{ a: 1 }, 5, { traceId: 't', spanId: 1 }, { resourceMetrics: [] }, [{ name: 'a span without ids' }]],
  trace: [callIn('odd', { 'gen_ai.operation.name': 'execute_tool' }), { traceId: 'odd', spanId: 'a', name: 'GET /' }],
  failed: [
    odd({}, { status: { code: 2 } }),
    odd({ 'gen_ai.output.messages': undefined }, { status: { code: 2 } }),
    odd(input([]), { status: { code: 'STATUS_CODE_ERROR' } }),
    odd({}, { status: 'Error' }),
    odd({ 'error.type': 'timeout' }),
    { traceId: 'odd', id: 'g', type: 'GENERATION', level: 'ERROR', input: 'Hi' },
    { root_span_id: 'odd', span_id: 's', span_attributes: { type: 'llm' }, input: 'Hi', error: 'timeout' },
  ],
  input: [
    ...[odd(input([])), odd({ 'gen_ai.input.messages': undefined }), odd(input({ order: 1 })), odd(input([{}]))],
    odd({ 'gen_ai.input.messages': undefined, 'gen_ai.prompt': 'system: Be brief.\nuser: Hi' }),
  ],
  dropped: [
    odd({}, { droppedAttributesCount: 1 }),
    odd({}, { dropped_attributes_count: '3' }),
    odd({ 'gen_ai.output.messages': undefined }, { droppedAttributesCount: 2 }),
    odd({}, { droppedEventsCount: 1, events: [{ name: 'gen_ai.user.message', attributes: { content: 'Hi' } }] }),
    odd({}, { events: [{ name: 'gen_ai.user.message', attributes: { content: 'Hi' }, droppedAttributesCount: 1 }] }),
  ],
  answer: [
    ...['[]', 'null', '', undefined].map((written) => odd({ 'gen_ai.output.messages': written })),
    odd(output([])),
    odd(output([{ type: 'reasoning', content: 'Hm' }])),
  ],
  unfinished: [
    ...[['length'], '["length"]', ['max_tokens']].map((reasons) => odd({ 'gen_ai.response.finish_reasons': reasons })),
    odd({ 'gen_ai.output.messages': JSON.stringify([{ ...reply('Hel'), finish_reason: 'length' }]) }),
    ...[
      { choices: [{ index: 0, message: { role: 'assistant', content: 'Hel' }, finish_reason: 'length' }] },
      { role: 'assistant', content: [{ type: 'text', text: 'Hel' }], stop_reason: 'max_tokens' },
      { candidates: [{ content: { role: 'model', parts: [{ text: 'Hel' }] }, finishReason: 'MAX_TOKENS' }] },
      { role: 'assistant', content: 'Hel', response_metadata: { finish_reason: 'length' } },
    ].map((written) => odd({ 'gen_ai.output.messages': JSON.stringify(written) })),
    ...['model_context_window_exceeded', 'model_length', 'ERROR_LIMIT', 'pause_turn', 'incomplete'].map((reason) =>
      odd({ 'gen_ai.response.finish_reasons': [reason] }),
    ),
    odd({
      'gen_ai.output.messages': JSON.stringify({
        status: 'incomplete',
        output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hel' }] }],
      }),
    }),
    odd({
      'gen_ai.output.messages': JSON.stringify({
        generations: [[{ text: 'Hel', generation_info: { finish_reason: 'length' } }]],
      }),
    }),
    odd({
      'ai.operationId': 'ai.generateText.doGenerate',
      'ai.response.text': 'H',
      'ai.response.finishReason': 'length',
    }),
    ...[
      { choices: [{ index: 0, message: reply('Hel'), finish_reason: 'length' }] },
      { generations: [[{ text: 'Hel', generation_info: { finish_reason: 'length' } }]] },
      { content: 'Hel', stop_reason: 'max_tokens' },
      { output: [], status: 'incomplete' },
    ].map((whole) => odd({ 'openinference.span.kind': 'LLM', 'output.value': JSON.stringify(whole) })),
  ],
  filtered: [
    ...[
      ...['SAFETY', 'RECITATION', 'BLOCKLIST', 'PROHIBITED_CONTENT', 'SPII', 'MALFORMED_FUNCTION_CALL', 'LANGUAGE'],
      ...['refusal', 'guardrail_intervened', 'content_filtered', 'ERROR_TOXIC', 'abort', 'cancelled', 'failed'],
    ].map((reason) => odd({ 'gen_ai.response.finish_reasons': [reason] })),
    odd({ 'gen_ai.response.finish_reasons': ['content_filter'] }),
    odd({ 'gen_ai.output.messages': JSON.stringify([{ ...reply('Hel'), finish_reason: 'content_filter' }]) }),
  ],
  cut: [
    ...['[{"role":"us', '[[{"role":"us'].map((list) => odd(input(list))),
    odd({ 'gen_ai.tool.definitions': '[{"type":"function","na' }),
    odd({ 'gen_ai.output.messages': '[{"role":"assis' }),
  ],
  media: [
    ...[
      { type: 'blob', modality: 'image', mime_type: 'image/png', content: 'AQI=' },
      { type: 'uri', uri: 'https://a/b.png' },
      { type: 'image_url', image_url: { url: 'data:' } },
      { type: 'input_audio', input_audio: {} },
      { type: 'file', mediaType: 'image/png', data: 'AQI=' },
      { type: 'image', source: {} },
      { inlineData: { mimeType: 'image/png', data: 'AQI=' } },
      { type: 'tool-result', toolCallId: 'c', output: { type: 'content', value: [{ type: 'image-data', data: '' }] } },
      { type: 'tool_result', tool_use_id: 'c', content: [{ type: 'image', source: {} }] },
    ].map((part) =>
      odd(
        input([
          { role: 'user', parts: text },
          { role: 'assistant', parts: [toolCall, part] },
        ]),
      ),
    ),
    odd(output([...text, { type: 'image', data: '' }])),
    ...[{ images: ['AQI='] }, { experimental_attachments: [{ url: 'data:' }] }, { audio: { id: 'a' } }].map((more) =>
      odd(input([{ role: 'user', content: 'Look', ...more }])),
    ),
    odd({ 'gen_ai.system_instructions': [...text, { type: 'blob', content: 'AQI=' }] }),
    odd({
      'ai.operationId': 'ai.generateText.doGenerate',
      'ai.response.text': 'See',
      'ai.response.files': '[{"mediaType":"image/png"}]',
    }),
  ],
  part: [
    odd(input(JSON.parse(messages([...text, { type: 'video_clip_v2', clip: 1 }])))),
    odd(input(['Hi', { role: 'user', content: 'Hi' }])),
    odd(input([{ type: 'web_search_call' }])),
    odd(output([{ type: 'tool_call', arguments: {} }])),
    odd(input([{ role: 'user', value: 'Hi' }])),
    odd(
      input([
        ...JSON.parse(messages(text)),
        { role: 'assistant', content: '', toolInvocations: [{ state: 'result' }] },
      ]),
    ),
    odd({
      'gen_ai.output.messages': [{ type: 'ai', content: 'Wait', invalid_tool_calls: [{ name: 'price', args: '{' }] }],
    }),
    odd({ 'gen_ai.output.messages': [{ choices: [{ index: 0, delta: { content: 'He' } }] }] }),
  ],
  role: [odd(input([{ role: 'ipython', content: 'Hi' }]))],
  system: [
    odd(input([...JSON.parse(messages(text)), { role: 'system', content: 'Stop.' }])),
    odd({ ...input([{ role: 'system', content: 'A' }]), 'gen_ai.system_instructions': 'B' }),
  ],
  gap: [odd(input([...JSON.parse(messages(text)), { role: 'tool', tool_call_id: 'c', content: '5' }]))],
  unlisted: [odd(output([toolCall]))],
  arguments: [
    ...['{"fruit": "fi', '[1]', '"fig"'].map((written) => ({ parameters: { type: 'object' }, written })),
    ...[undefined, {}, { fruit: 1 }].map((written) => ({
      parameters: { type: 'object', properties: { fruit: { type: 'string' } }, required: ['fruit'] },
      written,
    })),
  ].map(({ parameters, written }) =>
    odd({
      'gen_ai.tool.definitions': JSON.stringify([{ name: 'price', parameters }]),
      ...output([{ ...toolCall, arguments: written }]),
    }),
  ),
  tool: ['[{"type":"function"}]', '[{"type":"web_search","name":"search"}]', 'price'].map((tools) =>
    odd({ 'gen_ai.tool.definitions': tools }),
  ),
  choice: [
    odd({ 'gen_ai.output.messages': JSON.stringify([reply('Hello'), reply('Hi')]) }),
    odd({
      'gen_ai.output.messages': JSON.stringify({ choices: [0, 1].map((index) => ({ index, message: reply('Hi') })) }),
    }),
  ],
  judge: [
    ...[{ 'openinference.span.kind': 'EVALUATOR' }, { 'braintrust.span_attributes': { type: 'score' } }].map(
      (scorer) => [
        { traceId: 'good', spanId: 'scorer', name: 'faithful', attributes: scorer },
        callIn('good', { 'gen_ai.agent.name': 'judge' }, { spanId: 'j', parentSpanId: 'scorer' }),
      ],
    ),
    {
      id: 'good',
      observations: [
        { traceId: 'good', id: 'scorer', type: 'EVALUATOR', name: 'faithful' },
        { traceId: 'good', id: 'j', type: 'GENERATION', parentObservationId: 'scorer', input: 'Hi', level: 'ERROR' },
      ],
    },
  ],
  reasoning: [
    odd(output([{ type: 'reasoning', content: 'Hm' }, ...text])),
    ...['reasoning_content', 'reasoning', 'thinking'].map((field) =>
      odd({ 'gen_ai.output.messages': [{ role: 'assistant', content: 'Hello', [field]: 'Hm' }] }),
    ),
  ],
  score: [
    odd({ 'drmas.success': 'maybe' }),
    { traceId: 'good', name: 'helpful', value: 'very' },
    { traceId: 'good', name: 'mood', value: 0, dataType: 'CATEGORICAL', stringValue: 'calm' },
    { traceId: 'good', name: 'mood', value: 0, dataType: 'CATEGORICAL' },
    {
      ...{ traceId: 'good', spanId: 'good 1', eventName: 'gen_ai.evaluation.result' },
      attributes: { 'gen_ai.evaluation.name': 'style', 'gen_ai.evaluation.score.label': 'relevant' },
    },
    { id: 'good', observations: [], scores: ['very', 1].map((value) => ({ name: 'helpful', value })) },
  ],
  several: [{ id: 'good', observations: [], scores: [1, 0].map((value) => ({ name: 'correct', value })) }],
  taken: [odd({ 'drmas.task.data': '{"essay":"...","score":3}', 'drmas.success': 1 })],
  lone: [{ traceId: 'odd', name: 'helpful', value: 1 }],
  task: [odd({ 'drmas.task.data': '[1]' })],
  tasks: [
    [
      callIn('odd', { 'drmas.task.data': { order: 1 } }),
      { traceId: 'odd', spanId: 'other', name: 'order', attributes: { 'drmas.task.data': { order: 2 } } },
    ],
  ],
};

/** Reasons for which something else is still read. */
const READ: readonly UnreadReason[] = ['tool', 'choice', 'reasoning', 'score', 'taken', 'task', 'tasks'];

describe('what an import does not read', () => {
  const cases = Object.entries(unreadable).flatMap(([reason, rows]) =>
    rows.map((row) => [reason as UnreadReason, typeof row === 'string' ? row : JSON.stringify(row)] as const),
  );
  it.each(cases)('is counted as %s: %s', async (reason, row) => {
    const file = join(folder, 'traces.jsonl');
    await writeFile(file, `${JSON.stringify(callIn('good', {}))}\n\n${row}\n`);
    const { unread, demonstrations } = await importTraces(file);
    expect(unread).toEqual({ [reason]: { count: 1, file, line: 3 } });
    const isRead = READ.includes(reason) && row.includes('"odd"');
    expect(demonstrations).toBe(isRead ? 2 : 1);
    const json = JSON.parse((await drmas(['import', file, '--json'])).out);
    expect(json.unread).toEqual(unread);
    const { out } = await drmas(['import', file], { screen: true });
    const printed = out.replaceAll(/\s+/g, ' ');
    expect(printed).toContain(`not read 1 ${UNREAD[reason]}`);
    expect(out.replaceAll(/\s+/g, '')).toContain(`(${file}:3)`.replaceAll(/\s+/g, ''));
  });

  it('is counted as file: other files of a folder', async () => {
    await writeFile(join(folder, 'a.jsonl'), JSON.stringify(callIn('good', {})));
    await writeFile(join(folder, 'b.jsonl.gz'), '');
    const { unread } = await importTraces(folder);
    expect(unread).toEqual({ file: { count: 1, file: join(folder, 'b.jsonl.gz') } });
  });

  it('is a text of the length at which the tracer cut others off, or several of a round one', async () => {
    const file = join(folder, 'traces.jsonl');
    const said = (trace: string, content: string, asked = 'Hi') =>
      callIn(trace, { 'gen_ai.input.messages': asked, 'gen_ai.output.messages': content });
    const imported = async (...spans: object[]) => {
      await writeFile(file, [callIn('good', {}), ...spans].map((span) => JSON.stringify(span)).join('\n'));
      const { demonstrations, unread } = await importTraces(file);
      return [demonstrations, unread.cut?.count ?? 0];
    };
    const half = odd({ 'gen_ai.tool.definitions': `[{"type":"${'f'.repeat(999)}` });
    expect(await imported(half, said('a', 'x'.repeat(1009)), said('b', 'x'.repeat(1008)))).toEqual([2, 2]);
    const shorter = said('b', 'y'.repeat(200));
    expect(await imported(said('a', 'x'.repeat(300)), said('c', 'y'.repeat(300)), shorter)).toEqual([2, 2]);
    expect(await imported(said('a', 'Ja', 'x'.repeat(256)), said('c', 'y'.repeat(256)), shorter)).toEqual([2, 2]);
    expect(await imported(said('a', 'x'.repeat(301)), said('c', 'y'.repeat(301)), shorter)).toEqual([4, 0]);
    expect(await imported(said('a', 'x'.repeat(300)), said('c', 'x'.repeat(300)), shorter)).toEqual([4, 0]);
    expect(await imported(said('a', 'x'.repeat(300)), said('c', 'y'.repeat(299)))).toEqual([3, 0]);
  });

  it('has the line of a span in a file with one value on several lines, and in an array', async () => {
    const spans = [callIn('a', {}), callIn('b', input([])), callIn('c', {}), callIn('d', output([]))];
    const file = join(folder, 'traces.json');
    for (const value of [{ resourceSpans: [{ scopeSpans: [{ spans }] }] }, { data: spans }, spans]) {
      const written = JSON.stringify(value, null, 2);
      const escaped = written.replaceAll(/(?<="spanId": "\w) /g, String.raw`\u0020`);
      await writeFile(file, value === spans ? written : escaped);
      const lineOf = (id: string) => written.slice(0, written.indexOf(`"spanId": "${id}"`)).split('\n').length;
      const { unread } = await importTraces(file);
      const places = Object.values(unread).map(({ line = 0 }) => line);
      const shift = Array.isArray(value) ? 2 : 0; // of an entry of an array: its first line
      expect(places).toEqual([lineOf('b 1') - shift, lineOf('d 1') - shift]);
    }
  });

  it('is nothing of values that are printed one after another, each on several lines', async () => {
    const file = join(folder, 'traces.json');
    const spans = ['a', 'b', 'c'].map((trace) => callIn(trace, {}));
    const printed = spans.map((span) => JSON.stringify(span, null, 4));
    for (const end of ['\n', '\r\n']) {
      const text = printed.join('\n').replaceAll('\n', end);
      await writeFile(file, text);
      expect(await importTraces(file)).toMatchObject({ demonstrations: 3, unread: {} });
      // A part that is no JSON costs its own lines alone.
      await writeFile(file, `${text}${end}plain text${end}${JSON.stringify(callIn('d', {}))}${end}{"a":${end}`);
      const line = text.split('\n').length + 1;
      expect(await importTraces(file)).toMatchObject({ demonstrations: 4, unread: { line: { count: 2, line } } });
    }
  });

  it.each([
    ...[
      'stop',
      'STOP',
      'end_turn',
      'stop_sequence',
      'tool_calls',
      'tool-calls',
      'tool_use',
      'function_call',
      'eos_token',
    ],
    ...['COMPLETE', 'completed', 'other', 'unknown'],
  ])('is nothing of an answer that its model ended: %s', async (reason) => {
    const file = join(folder, 'traces.jsonl');
    await writeFile(file, JSON.stringify(callIn('good', { 'gen_ai.response.finish_reasons': [reason] })));
    expect((await importTraces(file)).unread).toEqual({});
  });

  it('is nothing of answers that a limit of few tokens ends on purpose', async () => {
    const file = join(folder, 'traces.jsonl');
    const word = { 'gen_ai.response.finish_reasons': ['length'], 'gen_ai.usage.output_tokens': 1 };
    await writeFile(file, JSON.stringify(callIn('a', word)));
    expect(await importTraces(file)).toMatchObject({ demonstrations: 1, unread: {} });
  });

  it('is nothing of spans whose parents are a circle', async () => {
    const file = join(folder, 'traces.jsonl');
    const [a, b] = ['a 1', 'b'].map((parent, i) => ({
      ...callIn('a', {}, { spanId: ['b', 'a 1'][i], parentSpanId: parent }),
    }));
    const own = callIn('c', {}, { parentSpanId: 'c 1' });
    await writeFile(file, [a, b, own].map((span) => JSON.stringify(span)).join('\n'));
    expect(await importTraces(file)).toMatchObject({ demonstrations: 3, unread: {} });
  });

  it('keeps what stands before the end of an array that was cut off', async () => {
    const file = join(folder, 'traces.json');
    await writeFile(file, JSON.stringify([callIn('good', {}), callIn('b', {})], null, 1).slice(0, -40));
    expect(await importTraces(file)).toMatchObject({ demonstrations: 1, unread: { line: { count: 1, file } } });
  });

  it('counts a call once that two instrumentations recorded, one of them without messages', async () => {
    const file = join(folder, 'traces.jsonl');
    const bare = { 'gen_ai.input.messages': undefined, 'gen_ai.output.messages': undefined };
    const inside = callIn('a', bare, { spanId: 'inside', parentSpanId: 'a 1' });
    const around = callIn('b', bare);
    const within = callIn('b', {}, { spanId: 'within', parentSpanId: 'b 1' });
    await writeFile(file, [callIn('a', {}), inside, around, within].map((span) => JSON.stringify(span)).join('\n'));
    expect(await importTraces(file)).toMatchObject({ demonstrations: 2, unread: {} });
  });

  it.each<[UnreadReason, Fields]>([
    ['role', input([{ role: odder, content: 'Hi' }])],
    ['part', input([{ type: odder, content: 'Hi' }])],
    ['part', input([{ role: 'user', content: [{ type: odder, text: 'Hi' }] }])],
    ['part', output([{ type: 'tool_call', name: odder }])],
    ['tool', { 'gen_ai.tool.definitions': [{ name: odder }] }],
    ['score', { 'drmas.success': odder }],
  ])('is counted as %s if an object with the names of methods stands for a text: %j', async (reason, attributes) => {
    const file = join(folder, 'traces.jsonl');
    await writeFile(file, [callIn('good', {}), odd(attributes)].map((span) => JSON.stringify(span)).join('\n'));
    expect((await importTraces(file)).unread).toEqual({ [reason]: { count: 1, file, line: 2 } });
  });

  it('does not end the import, whichever field of a row an object with the names of methods stands in', async () => {
    const rows = Object.values(unreadable).flatMap((all) => all.filter((row) => typeof row !== 'string'));
    const changed = [...rows, callIn('good', {})].flatMap((row) => [...withOdder(JSON.parse(JSON.stringify(row)))]);
    const file = join(folder, 'traces.jsonl');
    await writeFile(file, [callIn('good', {}), ...changed].map((row) => JSON.stringify(row)).join('\n'));
    expect(changed.length).toBeGreaterThan(1000);
    expect((await importTraces(file, { agent: 'greeter' })).demonstrations).toBeGreaterThan(0);
  });

  it('counts a score in the traces that have it, also if it is named as a method is', async () => {
    const file = join(folder, 'traces.jsonl');
    const score = { traceId: 'a', name: 'constructor', value: 1 };
    const rows = [callIn('a', {}), callIn('b', { 'gen_ai.agent.name': 'constructor' }), score];
    await writeFile(file, rows.map((row) => JSON.stringify(row)).join('\n'));
    const { traces, agents } = await importTraces(file, { score: 'constructor' });
    expect(traces).toEqual({ all: 2, kept: 2, scored: 1, mean: 1 });
    expect(Object.keys(agents)).toEqual(['constructor', 'greeter']);
  });
});

/** A copy of the row for each value in it, also in texts of JSON, with `odder` in the place of the value. */
function* withOdder(row: unknown): Generator<unknown> {
  const inner = typeof row === 'string' && /^[[{]/.test(row) ? jsonOf(row) : row;
  if (typeof inner !== 'object' || inner === null) return;
  for (const [key, value] of Object.entries(inner))
    for (const other of [odder, ...withOdder(value)]) {
      const changed: unknown = Array.isArray(inner)
        ? inner.map((each: unknown, i) => (String(i) === key ? other : each))
        : { ...inner, [key]: other };
      yield typeof row === 'string' ? JSON.stringify(changed) : changed;
    }
}
