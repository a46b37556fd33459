/**
 * Two calls with a tool and one with an image, as tracers record them: a program on a server that answers by script,
 * the spans as a sample that is stored, and the demonstrations that they must become.
 */
import { mkdir, mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'vitest';
import { importTraces } from '../../src/runs/traces/import-traces.js';

/** Digits that JavaScript's numbers do not keep. */
export const ARGUMENTS = '{"fruit":"fig","id":2512292042121000001,"weight":1.0}';
/** The same arguments in the history of tracers that write parsed arguments anew. */
const ROUNDED = '{"fruit":"fig","id":2512292042121000000,"weight":1}';

const parameters = {
  type: 'object',
  properties: { fruit: { type: 'string' } },
  required: ['fruit'],
  additionalProperties: {},
};
export const price = { name: 'price', description: 'price of one', parameters };
const tools = [{ type: 'function' as const, function: price }];

/** A server with OpenAI's routes: it calls the tool, then says its result. */
export async function pricing() {
  const call = { id: 'c1', type: 'function', function: { name: 'price', arguments: ARGUMENTS } };
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const piece of request) body += piece;
    const { messages } = JSON.parse(body);
    const isCalled = messages.at(-1).role === 'tool' || Array.isArray(messages.at(-1).content);
    const message = isCalled
      ? { role: 'assistant', content: '5' }
      : { role: 'assistant', content: null, tool_calls: [call] };
    const choices = [{ index: 0, finish_reason: isCalled ? 'stop' : 'tool_calls', message }];
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ id: 'r', object: 'chat.completion', created: 1, model: 'big-1', choices, usage }));
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, close };
}

/** A client of the package `openai`, as far as the calls need it. */
interface Client {
  readonly chat: { readonly completions: { create(request: never): PromiseLike<unknown> } };
}

/** The three calls with the package `openai`. */
export async function callOpenAi({ chat }: Client): Promise<void> {
  const create = async (request: object) =>
    (await chat.completions.create(request as never)) as { choices: readonly { readonly message: object }[] };
  const messages: object[] = [
    { role: 'system', content: 'Say its price.' },
    { role: 'user', content: '3 fig' },
  ];
  const first = await create({ model: 'big-1', messages, tools });
  const history = [...messages, first.choices[0]?.message, { role: 'tool', tool_call_id: 'c1', content: '5' }];
  await create({ model: 'big-1', messages: history, tools });
  const url = 'data:image/png;base64,iVBORw0KGgo=';
  const content = [
    { type: 'text', text: 'look' },
    { type: 'image_url', image_url: { url } },
  ];
  await create({ model: 'big-1', messages: [{ role: 'user', content }] });
}

interface FinishedSpan {
  readonly name: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly events: readonly object[];
  readonly startTime: readonly [number, number];
  readonly status: object;
  readonly parentSpanContext?: { readonly spanId: string };
  spanContext(): { readonly traceId: string; readonly spanId: string };
}

/** Spans of OpenTelemetry as lines of a file, with ids and times that repeat. */
export function linesOf(spans: readonly FinishedSpan[]): string {
  const ids = spans.flatMap((span) => [span.spanContext().traceId, span.spanContext().spanId]);
  // Spans are in the order of their ends: of two that begin at once, the later one is around the other.
  const begun = spans.toReversed().sort(({ startTime: [a, b] }, { startTime: [c, d] }) => a - c || b - d);
  const rows = spans.map((span) => ({
    name: span.name,
    traceId: span.spanContext().traceId,
    spanId: span.spanContext().spanId,
    ...(span.parentSpanContext === undefined ? {} : { parentSpanId: span.parentSpanContext.spanId }),
    startTime: [1, begun.indexOf(span)],
    status: span.status,
    attributes: Object.fromEntries(Object.entries(span.attributes).filter(([name]) => !PASSING.test(name))),
    events: span.events.map((event) => ({ ...event, time: [1, 0] })),
  }));
  return repeatable(rows, ids);
}

/** Attributes that change from run to run, or with the version of a package. */
const PASSING = /duration|timestamp|response\.id|msTo|PerSecond|headers|version|caller_/;

/** Rows as lines, with numbers in place of ids. */
export function repeatable(rows: readonly object[], ids: readonly unknown[]): string {
  const numbers = new Map([...new Set(ids)].map((id, i) => [id, `id-${i}`]));
  return rows
    .map((row) => `${JSON.stringify(row, (_, value: unknown) => (numbers.has(value) ? numbers.get(value) : value))}\n`)
    .join('');
}

/** The differences between tracers in the demonstrations of the calls. */
export interface Traced {
  /** Whether the tracer writes the arguments of a call in the history, or of each call, anew. */
  readonly rounds?: 'history' | 'all';
  /** Whether results name their tool. */
  readonly named?: boolean;
  /** Calls that cannot be read, by reason. Default: the one with an image. */
  readonly unread?: Readonly<Record<string, number>>;
  /** The number of the demonstrations, from the first. Default: both. */
  readonly count?: number;
}

/** Imports a file of traces and compares the demonstrations with the calls. */
export async function expectCalls(file: string, out: string, { rounds, named, unread, count = 2 }: Traced) {
  const read = [
    { role: 'system', content: 'Say its price.' },
    { role: 'user', content: '3 fig' },
  ];
  const called = (isRounded: boolean) => ({
    ...{ role: 'assistant', content: '' },
    toolCalls: [{ id: expect.any(String), name: 'price', arguments: isRounded ? ROUNDED : ARGUMENTS }],
  });
  const result = { role: 'tool', content: '5', toolCallId: 'c1', ...(named ? { name: 'price' } : {}) };
  const history = [...read, called(rounds !== undefined), result];
  const traces = await importTraces(file, {}, out);
  const lines = (await readFile(join(out, 'demonstrations.jsonl'), 'utf8')).trim().split('\n');
  expect(lines.map((line) => JSON.parse(line))).toEqual(
    [
      { agent: 'buyer', messages: [...read, called(rounds === 'all')], tools: [price] },
      { agent: 'buyer', messages: [...history, { role: 'assistant', content: '5' }], tools: [price] },
    ].slice(0, count),
  );
  const counts = Object.entries(traces.unread).map(([reason, { count }]) => [reason, count]);
  expect(Object.fromEntries(counts)).toEqual(unread ?? { media: 1 });
}

const samples = join(import.meta.dirname, 'traces');

/** The stored samples, and what their tracers do otherwise. Each is what the package of its name wrote. */
export const SAMPLES = {
  'ai-6': { rounds: 'history', named: true },
  'ai-7': { rounds: 'all' },
  'openinference-openai': {},
  'openinference-ai-6': { rounds: 'history', named: true },
  'openllmetry-0.20': { unread: { gap: 1, media: 1 }, count: 1 },
  'openllmetry-0.27': { rounds: 'all' },
  langfuse: {},
  braintrust: {},
} as const satisfies Readonly<Record<string, Traced>>;

export const sampleFile = (name: keyof typeof SAMPLES) => join(samples, `${name}.jsonl`);

/**
 * Compares what a package writes today with the stored sample (`vitest -u` stores it anew), and imports it.
 * @param root A folder for files of the test
 */
export async function expectSample(name: keyof typeof SAMPLES, lines: string, root: string): Promise<void> {
  await expect(lines).toMatchFileSnapshot(sampleFile(name));
  await expectLines(name, lines, root);
}

/** Imports lines with the calls of a sample. */
export async function expectLines(name: keyof typeof SAMPLES, lines: string, root: string): Promise<void> {
  await mkdir(root, { recursive: true });
  const folder = await mkdtemp(join(root, 'sample-'));
  await writeFile(join(folder, 'traces.jsonl'), lines);
  await expectCalls(join(folder, 'traces.jsonl'), join(folder, 'out'), SAMPLES[name]);
}
