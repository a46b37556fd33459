/** Spans of production traces in one form: of OTLP JSON, exporters of OpenTelemetry, and the exports of tools. */
import { DEEPEST, isObject } from '@drmas/engine/errors';
import { feedbackIn } from './conventions.js';
import { toolsIn } from './offered-tools.js';
import { langsmithRun, mlflowTrace } from './runs-of-tools.js';
import {
  attributesOf,
  contentNames,
  fieldOf,
  isEmpty,
  type JsonFields,
  jsonOf,
  listOf,
  merged,
  partsOf,
  scoreOf,
  scoresOf,
  startText,
  type TraceScore,
  type TraceSpan,
  text,
  textField,
  typedValue,
  type UnplacedSpan,
  wordOf,
} from './span-fields.js';
import { TOO_DEEP, type TraceValue } from './trace-files.js';
import type { UnreadCounts } from './unread.js';

/** Fields of batches that list spans, logs, or batches. */
const LISTS = [
  'resourceSpans',
  'batches',
  'scopeSpans',
  'instrumentationLibrarySpans',
  'spans',
  'resourceLogs',
  'scopeLogs',
  'logRecords',
  'observations',
  'events',
  'data',
  'rows',
  'runs',
  'traces',
];

/**
 * The spans of one JSON value of a file: a span, a batch, or a trace with its observations. Counts rows that are none.
 * A span may have lists of its own, `events` for example, so it is looked for before the lists of a batch.
 */
export function spansOf(
  value: unknown,
  at: Pick<TraceValue, 'placeOf'>,
  unread: UnreadCounts,
  depth = 0,
): readonly TraceSpan[] {
  const isDeep = value === TOO_DEEP || depth > DEEPEST;
  const within = (inner: unknown) => spansOf(inner, at, unread, depth + 1);
  if (Array.isArray(value) && !isDeep) return value.flatMap(within);
  if (isObject(value) && !isDeep) {
    for (const read of [braintrustSpan, logEvent, phoenixSpan, openTelemetrySpan, langfuseSpan]) {
      const span = read(value);
      if (span !== undefined) return [placed(span, at)];
    }
    const run = langsmithRun(value);
    if (run !== undefined) {
      const { child_runs: children } = value;
      return [placed(run, at), ...(Array.isArray(children) ? within(children) : [])];
    }
    const mlflow = mlflowTrace(value);
    if (mlflow !== undefined) return [placed(mlflow.whole, at), ...within(mlflow.spans)];
    const lists = LISTS.map((name) => fieldOf(value, name)).filter(Array.isArray);
    if (lists.length > 0) {
      // A file that Langfuse's page writes has the trace beside its observations; one of Opik has it beside its spans.
      const around = isObject(value.trace) ? { scores: value.scores, ...value.trace } : value;
      const trace = isObject(value.trace) || Array.isArray(value.observations) ? traceOf(around) : undefined;
      const whole = trace === undefined ? [] : [placed(trace, at)];
      return [...whole, ...lists.flatMap(within)];
    }
    if (isObject(value.trace)) return within(value.trace);
    const row = scoreRow(value) ?? (isTraceRow(value) ? traceOf(value) : undefined);
    if (row !== undefined) return [placed(row, at)];
  }
  unread.add(isDeep ? 'deep' : 'row', at.placeOf());
  return [];
}

const placed = (span: UnplacedSpan, at: Pick<TraceValue, 'placeOf'>): TraceSpan => ({
  ...span,
  place: at.placeOf(span.id),
});

/** The ids of a span: its own fields, or those of its context. Jaeger writes `traceID`; Zipkin's spans have tags. */
function idsOf(value: JsonFields): { readonly trace: string | undefined; readonly id: string | undefined } {
  const context = [value.spanContext, value._spanContext, value.context].find(isObject) ?? {};
  const own = value.attributes === undefined && !isObject(value.tags) ? undefined : text(value.id);
  return {
    trace: textField(value, 'traceId') ?? textField(context, 'traceId') ?? text(value.traceID),
    id: textField(value, 'spanId') ?? textField(context, 'spanId') ?? text(value.spanID) ?? own,
  };
}

/**
 * A span as OTLP JSON has it, as exporters of OpenTelemetry's JavaScript and Python packages write it, or as Jaeger and
 * Zipkin return it, which have `tags`.
 */
function openTelemetrySpan(value: JsonFields): UnplacedSpan | undefined {
  const { trace, id } = idsOf(value);
  if (id === undefined || trace === undefined || value.type === 'GENERATION') return undefined;
  const parents = isObject(value.parentSpanContext) ? value.parentSpanContext : {};
  const reference = listOf(value.references).find((each) => isObject(each) && each.refType === 'CHILD_OF');
  const own = attributesOf(value.attributes ?? value.tags);
  const events = [...listOf(value.events).filter(isObject), ...jaegerEvents(value.logs), ...eventsOf(own)];
  const messages = events.filter(isMessageEvent);
  const contents = events.map((event) => attributesOf(event.attributes));
  const attributes = merged([...contents, own]);
  return {
    trace,
    id,
    name: text(value.name) ?? text(value.operationName) ?? '',
    attributes,
    events: messages,
    dropped:
      hasDropped(value) ||
      (messages.length > 0 && hasDropped(value, 'Events')) ||
      messages.some((event) => hasDropped(event)),
    parent:
      textField(value, 'parentSpanId') ??
      text(fieldOf(value, 'parentId')) ??
      text(parents.spanId) ??
      (isObject(reference) ? text(reference.spanID) : undefined),
    start: startText(fieldOf(value, 'startTimeUnixNano') ?? fieldOf(value, 'startTime') ?? value.timestamp),
    scores: [...contents.flatMap(evaluation), ...rewardsOfRun(attributes), ...feedbackIn(attributes)],
    failed:
      [value.status, fieldOf(value, 'statusCode'), own['otel.status_code']].some(isFailure) ||
      text(own['error.type']) !== undefined,
  };
}

const jaegerEvents = (logs: unknown): JsonFields[] =>
  listOf(logs)
    .filter(isObject)
    .map(({ fields }) => attributesOf(fields))
    .map((attributes) => ({ name: attributes.event, attributes }));

/** The events that Pydantic AI writes as the JSON of one attribute. */
function eventsOf({ events }: JsonFields): JsonFields[] {
  const named = listOf(jsonOf(events)).filter(isObject);
  return named.map(({ 'event.name': name, ...body }) => ({ name, body }));
}

/** OpenTelemetry's tracers keep 128 attributes of a span by default, and count the others. */
const hasDropped = (value: JsonFields, what: 'Attributes' | 'Events' = 'Attributes') =>
  Number(wordOf(fieldOf(value, `dropped${what}Count`))) > 0;

function isFailure(status: unknown): boolean {
  const code = wordOf(isObject(status) ? (status.code ?? fieldOf(status, 'statusCode')) : status);
  return Number(code) === 2 || /^(?:STATUS_CODE_)?ERROR$/i.test(code);
}

/** A record of OpenTelemetry's logs: newer instrumentations write messages as events there. */
function logEvent(value: JsonFields): UnplacedSpan | undefined {
  const { trace, id } = idsOf(value);
  const attributes = attributesOf(value.attributes);
  const name = text(fieldOf(value, 'eventName')) ?? text(attributes['event.name']);
  const isLog = name !== undefined || 'severityNumber' in value || 'severity_number' in value;
  if (!isLog || value.name !== undefined || trace === undefined || id === undefined) return undefined;
  const event = { name, attributes: value.attributes, body: value.body };
  return {
    ...{ kind: 'event' as const, trace, id, name: '', failed: false },
    start: startText(fieldOf(value, 'timeUnixNano') ?? value.hrTime ?? value.timestamp),
    attributes: isMessageEvent(event) ? {} : { ...attributesOf(typedValue(value.body)), ...attributes },
    events: [event].filter(isMessageEvent),
    dropped: hasDropped(value),
    scores: evaluation(attributes),
  };
}

const MESSAGE_EVENT = /^gen_ai\.(?:(system|user|assistant|tool)\.message|(choice))$/;
const isMessageEvent = ({ name }: JsonFields) => MESSAGE_EVENT.test(text(name) ?? '');

/**
 * The messages that older conventions of OpenTelemetry write as one event each: `gen_ai.user.message` and its like for
 * what a model reads, `gen_ai.choice` for its answers.
 */
export function messagesInEvents(events: readonly JsonFields[]): JsonFields {
  const [read, answers]: [unknown[], unknown[]] = [[], []];
  for (const { name, attributes, body } of events) {
    const [, role, choice] = MESSAGE_EVENT.exec(text(name) ?? '') ?? [];
    const { 'gen_ai.event.content': content, ...rest } = {
      ...attributesOf(attributes),
      ...attributesOf(typedValue(body)),
    };
    const written = jsonOf(content);
    const fields = isObject(written) ? { ...rest, ...written } : rest;
    const { message, ...parsed } = Object.fromEntries(
      Object.entries(fields).map(([key, field]) => [key, key === 'content' ? partsOf(field, role) : jsonOf(field)]),
    );
    // Strands writes the parts of an answer in the place of its message.
    const answer = Array.isArray(message) ? { content: message } : { message };
    if (choice === undefined) read.push({ role, ...parsed });
    else answers.push({ role: 'assistant', ...parsed, ...answer });
  }
  return {
    ...(read.length === 0 ? {} : { 'gen_ai.input.messages': read }),
    ...(answers.length === 0 ? {} : { 'gen_ai.output.messages': answers }),
  };
}

/** A span of Phoenix: of its REST interface, or a row of its table of spans, whose columns have dots in their names. */
function phoenixSpan(value: JsonFields): UnplacedSpan | undefined {
  const columns = Object.entries(value).filter(([name]) => name.startsWith('attributes.'));
  const { trace, id } = idsOf(value);
  const [ofTrace, ofId] = [text(value['context.trace_id']) ?? trace, text(value['context.span_id']) ?? id];
  const isTable = columns.length > 0 && text(value['context.span_id']) !== undefined;
  if ((!isTable && value.span_kind === undefined) || ofTrace === undefined || ofId === undefined) return undefined;
  const attributes = isTable
    ? Object.fromEntries(columns.map(([name, field]) => [name.slice('attributes.'.length), field]))
    : attributesOf(value.attributes);
  return {
    ...{ trace: ofTrace, id: ofId, name: text(value.name) ?? '', parent: textField(value, 'parentId') },
    attributes: { 'openinference.span.kind': value.span_kind, ...attributes },
    start: startText(value.start_time),
    scores: [...rewardsOfRun(attributes), ...feedbackIn(attributes)],
    failed: isFailure(value.status_code),
  };
}

/** An observation of Langfuse's API and exports, or a span of Opik's. */
function langfuseSpan(value: JsonFields): UnplacedSpan | undefined {
  const [trace, id, type] = [textField(value, 'traceId'), text(value.id), text(value.type)];
  if (trace === undefined || id === undefined || type === undefined) return undefined;
  const { model } = value;
  const metadata = jsonOf(value.metadata);
  const parent = textField(value, 'parentObservationId') ?? textField(value, 'parentSpanId');
  const usage = [jsonOf(fieldOf(value, 'usageDetails')), value.usage].find(isObject) ?? {};
  const more = isObject(metadata) && isObject(metadata.attributes) ? attributesOf(metadata.attributes) : {};
  const contents = { input: jsonOf(value.input), output: value.output };
  // Opik has tools there. A program of Langfuse may have any value there, and its tools in the request.
  const offered = toolsIn(contents.input) === undefined ? listOf(toolsIn(metadata)) : [];
  return {
    ...{ trace, id, name: text(value.name) ?? '', parent },
    start: startText(fieldOf(value, 'startTime')),
    attributes: {
      'gen_ai.tool.definitions': offered.every(isObject) ? offered : undefined,
      ...more,
      'langfuse.observation.type': type,
      ...contentNames(type === 'GENERATION', contents),
      'gen_ai.request.model': model ?? fieldOf(value, 'providedModelName'),
      'gen_ai.usage.input_tokens': usage.input ?? usage.prompt_tokens,
      'gen_ai.usage.output_tokens': usage.output ?? usage.completion_tokens,
    },
    scores: scoresOf(value.scores ?? fieldOf(value, 'feedbackScores')),
    failed: value.level === 'ERROR' || !isEmpty(fieldOf(value, 'errorInfo')),
  };
}

/** A row of Braintrust's logs. */
function braintrustSpan(value: JsonFields): UnplacedSpan | undefined {
  const [trace, id] = [text(value.root_span_id), text(value.span_id)];
  if (trace === undefined || id === undefined) return undefined;
  const kind = isObject(value.span_attributes) ? value.span_attributes : {};
  const [metrics = {}, metadata = {}] = [value.metrics, value.metadata].map((part) => (isObject(part) ? part : {}));
  const [parent] = listOf(value.span_parents);
  const isCall = kind.type === 'llm';
  const agent = metadata.agent ?? (isCall || text(parent) === undefined ? undefined : kind.name);
  return {
    ...{ trace, id, name: text(kind.name) ?? '', parent: text(parent) },
    start: startText(metrics.start ?? value.created),
    attributes: {
      'braintrust.span_attributes': kind,
      'gen_ai.request.model': isCall ? metadata.model : undefined,
      'gen_ai.agent.name': agent,
      'gen_ai.system_instructions': isCall ? metadata.instructions : undefined,
      'gen_ai.tool.definitions': toolsIn(metadata),
      ...contentNames(isCall, {
        input: isCall ? systemFirst(jsonOf(value.input)) : jsonOf(value.input),
        output: value.output,
      }),
      'gen_ai.usage.input_tokens': metrics.prompt_tokens,
      'gen_ai.usage.output_tokens': metrics.completion_tokens,
    },
    scores: scoresOf(value.scores),
    failed: !isEmpty(value.error),
  };
}

/** Whether it is a row of Langfuse's table of traces, whose observations are rows of another table. */
const isTraceRow = (value: JsonFields) =>
  ['timestamp', 'input'].every((name) => name in value) &&
  ['sessionId', 'session_id', 'userId', 'user_id'].some((name) => name in value);

/** Braintrust's wrapper of Anthropic's client adds the system prompt behind the messages. */
function systemFirst(input: unknown): unknown {
  const last: unknown = Array.isArray(input) ? input.at(-1) : undefined;
  return Array.isArray(input) && isObject(last) && last.role === 'system' ? [last, ...input.slice(0, -1)] : input;
}

/** A trace of Langfuse: the scores and the input of the whole. */
function traceOf(value: JsonFields): UnplacedSpan | undefined {
  const trace = text(value.id);
  if (trace === undefined) return undefined;
  const attributes = { 'input.value': jsonOf(value.input), 'output.value': value.output };
  const scores = scoresOf(value.scores ?? fieldOf(value, 'feedbackScores'));
  return { trace, id: `trace ${trace}`, name: text(value.name) ?? '', start: '', attributes, scores, failed: false };
}

/** A score in a file of its own, such as an export of Langfuse's scores. */
function scoreRow(value: JsonFields): UnplacedSpan | undefined {
  const trace = textField(value, 'traceId');
  const scores = scoresOf([value]);
  if (trace === undefined || scores.length === 0) return undefined;
  const id = `score ${text(value.id) ?? scores[0]?.name}`;
  return { kind: 'score', trace, id, name: '', start: '', attributes: {}, scores, failed: false };
}

/** The score in an event `gen_ai.evaluation.result`. */
const evaluation = (attributes: JsonFields): TraceScore[] =>
  scoreOf(
    attributes['gen_ai.evaluation.name'],
    attributes['gen_ai.evaluation.score.value'] ?? attributes['gen_ai.evaluation.score.label'],
  );

/** The reward and the success that drmas writes into the spans of its episodes. */
const rewardsOfRun = (attributes: JsonFields): TraceScore[] =>
  ['success', 'reward'].flatMap((name) => scoreOf(name, attributes[`drmas.${name}`]));
