/** Spans of production traces in one form, from OTLP JSON, exporters of OpenTelemetry, Langfuse and Braintrust. */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isObject, messageOf, TaskError } from '../../base/errors.js';
import { textChunks } from '../../teams/task-files.js';

/** A span of a trace, with the attribute names of OpenTelemetry's GenAI conventions. */
export interface TraceSpan {
  readonly trace: string;
  readonly id: string;
  readonly parent?: string | undefined;
  readonly name: string;
  /** Only compared with other spans of the trace: nanoseconds, milliseconds or ISO text, as the file has it. */
  readonly start: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  /** NaN is a score that is no number. */
  readonly scores: Readonly<Record<string, number>>;
}

type JsonFields = Readonly<Record<string, unknown>>;

/**
 * The spans of one JSON value of a file: a span, a batch, or a trace with its observations; empty for other values. A
 * span may have lists of its own, `events` for example, so it is looked for before the lists of a batch.
 */
export function spansOf(value: unknown): readonly TraceSpan[] {
  if (Array.isArray(value)) return value.flatMap(spansOf);
  if (!isObject(value)) return [];
  const single = [openTelemetrySpan(value), langfuseSpan(value), braintrustSpan(value)].find(isSpan);
  if (single !== undefined) return single;
  for (const list of ['resourceSpans', 'scopeSpans', 'spans', 'observations', 'events', 'data'])
    if (Array.isArray(value[list])) return [...(value[list] as unknown[]).flatMap(spansOf), ...traceOf(value)];
  return scoreRow(value) ?? [];
}

const isSpan = (spans: readonly TraceSpan[] | undefined) => spans !== undefined;

/** A span as OTLP JSON has it, or as exporters of OpenTelemetry's JavaScript packages write it. */
function openTelemetrySpan(value: JsonFields): readonly TraceSpan[] | undefined {
  const context = isObject(value.spanContext)
    ? value.spanContext
    : isObject(value._spanContext)
      ? value._spanContext
      : {};
  const id =
    text(value.spanId) ?? text(context.spanId) ?? (value.attributes === undefined ? undefined : text(value.id));
  const trace = text(value.traceId) ?? text(context.traceId);
  if (id === undefined || trace === undefined || value.type === 'GENERATION') return undefined;
  const parents = isObject(value.parentSpanContext) ? value.parentSpanContext : {};
  const events = Array.isArray(value.events) ? value.events.filter(isObject) : [];
  const attributes = Object.assign(
    {},
    messagesInEvents(events),
    ...events.map((event) => attributesOf(event.attributes)),
    attributesOf(value.attributes),
  );
  const evaluated = events.map(({ attributes: ofEvent }) => attributesOf(ofEvent));
  return [
    {
      trace,
      id,
      name: text(value.name) ?? '',
      attributes,
      parent: text(value.parentSpanId) ?? text(value.parentId) ?? text(parents.spanId),
      start: startText(value.startTimeUnixNano ?? value.startTime ?? value.timestamp),
      scores: numbers([...evaluated.map(evaluation), ...Object.entries(attributes).map(rewardOfRun)]),
    },
  ];
}

/**
 * The messages that older conventions of OpenTelemetry write as one event each: `gen_ai.user.message` and its like for
 * what a model reads, `gen_ai.choice` for its answers.
 */
function messagesInEvents(events: readonly JsonFields[]): JsonFields {
  const of = (pattern: RegExp) =>
    events.flatMap(({ name, attributes, body }) => {
      const role = pattern.exec(text(name) ?? '')?.[1];
      if (role === undefined) return [];
      const { 'gen_ai.event.content': content, ...rest } = { ...attributesOf(attributes), ...attributesOf(body) };
      const written = jsonOf(content);
      const fields = isObject(written) ? { ...rest, ...written } : rest;
      const parsed = Object.fromEntries(Object.entries(fields).map(([key, field]) => [key, jsonOf(field)]));
      return [role === 'choice' ? { role: 'assistant', ...parsed } : { role, ...parsed }];
    });
  const [read, answers] = [of(/^gen_ai\.(system|user|assistant|tool)\.message$/), of(/^gen_ai\.(choice)$/)];
  return {
    ...(read.length === 0 ? {} : { 'gen_ai.input.messages': read }),
    ...(answers.length === 0 ? {} : { 'gen_ai.output.messages': answers }),
  };
}

/** An observation of Langfuse's API and exports. */
function langfuseSpan(value: JsonFields): readonly TraceSpan[] | undefined {
  const [trace, id, type] = [text(value.traceId), text(value.id), text(value.type)];
  if (trace === undefined || id === undefined || type === undefined) return undefined;
  const { metadata, usageDetails } = value;
  const usage = isObject(usageDetails) ? usageDetails : {};
  const more = isObject(metadata) && isObject(metadata.attributes) ? attributesOf(metadata.attributes) : {};
  const calls = type === 'GENERATION';
  return [
    {
      trace,
      id,
      name: text(value.name) ?? '',
      parent: text(value.parentObservationId),
      start: startText(value.startTime),
      attributes: {
        ...more,
        ...(calls
          ? { 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': value.model ?? value.providedModelName }
          : {}),
        ...(type === 'AGENT' ? { 'gen_ai.agent.name': value.name } : {}),
        'gen_ai.input.messages': jsonOf(value.input),
        'gen_ai.output.messages': jsonOf(value.output),
        'gen_ai.usage.input_tokens': usage.input,
        'gen_ai.usage.output_tokens': usage.output,
      },
      scores: scoresOf(value.scores),
    },
  ];
}

/** A row of Braintrust's logs. */
function braintrustSpan(value: JsonFields): readonly TraceSpan[] | undefined {
  const [trace, id] = [text(value.root_span_id), text(value.span_id)];
  if (trace === undefined || id === undefined) return undefined;
  const kind = isObject(value.span_attributes) ? value.span_attributes : {};
  const [metrics, metadata] = [value.metrics, value.metadata].map((part) => (isObject(part) ? part : {}));
  const [parent] = Array.isArray(value.span_parents) ? value.span_parents : [];
  const calls = kind.type === 'llm';
  return [
    {
      ...{
        trace,
        id,
        name: text(kind.name) ?? '',
        parent: text(parent),
        start: startText(metrics?.start ?? value.created),
      },
      attributes: {
        ...(calls ? { 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': metadata?.model } : {}),
        ...(calls
          ? {}
          : { 'gen_ai.agent.name': metadata?.agent ?? (text(parent) === undefined ? undefined : kind.name) }),
        'gen_ai.tool.definitions': metadata?.tools,
        'gen_ai.input.messages': jsonOf(value.input),
        'gen_ai.output.messages': jsonOf(value.output),
        'gen_ai.usage.input_tokens': metrics?.prompt_tokens,
        'gen_ai.usage.output_tokens': metrics?.completion_tokens,
      },
      scores: scoresOf(value.scores),
    },
  ];
}

/** A trace of Langfuse around its observations: the scores and the input of the whole. */
function traceOf(value: JsonFields): readonly TraceSpan[] {
  const trace = text(value.id);
  if (trace === undefined || !Array.isArray(value.observations)) return [];
  const attributes = { 'gen_ai.input.messages': jsonOf(value.input), 'gen_ai.output.messages': jsonOf(value.output) };
  const name = text(value.name) ?? '';
  return [{ trace, id: `trace ${trace}`, name, start: '', attributes, scores: scoresOf(value.scores) }];
}

/** A score in a file of its own, such as an export of Langfuse's scores. */
function scoreRow(value: JsonFields): readonly TraceSpan[] | undefined {
  const trace = text(value.traceId) ?? text(value.trace_id);
  const scores = scoresOf([value]);
  if (trace === undefined || Object.keys(scores).length === 0) return undefined;
  return [
    { trace, id: `score ${text(value.id) ?? Object.keys(scores)[0]}`, name: '', start: '', attributes: {}, scores },
  ];
}

/** Scores as a list of `{ name, value }`, or as an object of numbers. */
function scoresOf(value: unknown): Readonly<Record<string, number>> {
  if (Array.isArray(value))
    return numbers(value.filter(isObject).map((each) => [text(each.name) ?? '', each.value ?? each.score]));
  return isObject(value) ? numbers(Object.entries(value)) : {};
}

const numbers = (pairs: readonly (readonly [string, unknown])[]): Readonly<Record<string, number>> =>
  Object.fromEntries(
    pairs.flatMap(([name, value]) => {
      if (name === '' || value === undefined || value === null) return [];
      return [[name, typeof value === 'boolean' || typeof value === 'number' ? Number(value) : Number.NaN]];
    }),
  );

/** The score in an event `gen_ai.evaluation.result`. */
const evaluation = (attributes: JsonFields): readonly [string, unknown] => [
  text(attributes['gen_ai.evaluation.name']) ?? '',
  attributes['gen_ai.evaluation.score.value'],
];

/** The reward and the success that drmas writes into the spans of its episodes. */
const rewardOfRun = ([name, value]: readonly [string, unknown]): readonly [string, unknown] => [
  name === 'drmas.success' || name === 'drmas.reward' ? name.slice('drmas.'.length) : '',
  value,
];

/** Attributes as an object, or as OTLP's list of keys with typed values. */
function attributesOf(value: unknown): Record<string, unknown> {
  if (Array.isArray(value))
    return Object.fromEntries(value.filter(isObject).map((each) => [String(each.key), typedValue(each.value)]));
  return isObject(value) ? { ...value } : {};
}

/** A typed value of OTLP JSON as plain data. */
function typedValue(value: unknown): unknown {
  if (!isObject(value)) return value;
  if (value.intValue !== undefined) return Number(value.intValue);
  if (isObject(value.arrayValue)) return listOf(value.arrayValue.values).map(typedValue);
  if (isObject(value.kvlistValue)) return attributesOf(value.kvlistValue.values);
  return value.stringValue ?? value.doubleValue ?? value.boolValue;
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);

/** A time that sorts as text. */
function startText(value: unknown): string {
  const [seconds, nanos] = Array.isArray(value) ? (value as unknown[]) : [];
  if (typeof seconds === 'number') return `${String(seconds).padStart(20, '0')}.${String(nanos).padStart(9, '0')}`;
  if (typeof value === 'number') return value.toFixed(9).padStart(30, '0');
  return typeof value === 'string' && /^\d+$/.test(value) ? value.padStart(20, '0') : String(value ?? '');
}

/** The value of a JSON text; other values as they are. */
export function jsonOf(value: unknown): unknown {
  if (typeof value !== 'string' || !/^\s*[[{"]/.test(value)) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

/**
 * The JSON values of a file, or of all `.json`, `.jsonl` and `.ndjson` files of a folder.
 * @throws TaskError naming the file, and the line of a text that is not JSON
 */
export async function* jsonValues(path: string): AsyncGenerator<unknown> {
  for (const file of await filesOf(path)) yield* valuesOf(file);
}

async function filesOf(path: string): Promise<string[]> {
  const facts = await stat(path).catch((error: unknown) => {
    throw new TaskError(`cannot be read: ${messageOf(error)}`, { file: path });
  });
  if (!facts.isDirectory()) return [path];
  const names = (await readdir(path)).filter((name) => /\.(jsonl?|ndjson)$/.test(name)).sort();
  if (names.length === 0) throw new TaskError('the folder has no .json, .jsonl or .ndjson file', { file: path });
  return names.map((name) => join(path, name));
}

/** The JSON values of a file: one a line, or the whole file as one. @throws TaskError naming file and line */
async function* valuesOf(file: string): AsyncGenerator<unknown> {
  let number = 0;
  for await (const line of linesOf(file)) {
    number++;
    if (line.trim() === '') continue;
    try {
      yield JSON.parse(line);
    } catch (error) {
      if (number > 1) throw new TaskError(`expected JSON: ${messageOf(error)}`, { file, line: number });
      yield await wholeFile(file);
      return;
    }
  }
}

async function* linesOf(file: string): AsyncGenerator<string> {
  let pieces: string[] = [];
  for await (const text of textChunks(file)) {
    const [end = '', ...lines] = text.split('\n');
    pieces.push(end);
    for (const line of lines) {
      yield pieces.join('');
      pieces = [line];
    }
  }
  yield pieces.join('');
}

async function wholeFile(file: string): Promise<unknown> {
  const pieces: string[] = [];
  for await (const text of textChunks(file)) pieces.push(text);
  try {
    return JSON.parse(pieces.join(''));
  } catch (error) {
    throw new TaskError(`expected JSON: ${messageOf(error)}`, { file, line: 1 });
  }
}
