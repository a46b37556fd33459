/** The calls of models in traces: the caller, the messages, and the tokens. */
import { isObject } from '../../base/errors.js';
import type { Message, Tool } from '../../base/nouns.js';
import { messagesOf, toolsOf } from './messages.js';
import { jsonOf, type TraceSpan } from './spans.js';

export interface ModelCall {
  /** Undefined if neither the span nor one around it names an agent. */
  readonly agent: string | undefined;
  readonly model: string | undefined;
  /** With the system prompt, if there was one, as the first message. */
  readonly messages: readonly Message[];
  readonly tools?: readonly Tool[];
  readonly answer: Message;
  readonly tokens: { readonly read: number; readonly written: number };
}

/** A trace: one execution of a team in production. */
export interface TracedEpisode {
  readonly trace: string;
  readonly calls: readonly ModelCall[];
  readonly scores: Readonly<Record<string, number>>;
  /** The input and the output of the whole, if the trace records them as an object. */
  readonly task?: Readonly<Record<string, unknown>>;
  /** What the trace has and nobody can read: calls, the task's data if it is no object, scores that are no numbers. */
  readonly unread: { readonly calls: number; readonly tasks: number; readonly scores: number };
}

/** Spans by their traces, in the order of the file; a trace without readable calls has none. */
export function tracedEpisodes(spans: readonly TraceSpan[]): TracedEpisode[] {
  const traces = new Map<string, TraceSpan[]>();
  for (const span of spans) {
    const others = traces.get(span.trace);
    if (others === undefined) traces.set(span.trace, [span]);
    else others.push(span);
  }
  return [...traces].map(([trace, all]) => {
    const byId = new Map(all.map((span) => [span.id, span]));
    // An exporter that tries again writes a span twice.
    const callSpans = [...byId.values()].filter(isCall).map((span) => ({ span, call: callOf(span, byId) }));
    const calls = callSpans.flatMap(({ span, call }) => (call === undefined ? [] : [{ span, call }]));
    // A call around other calls is their sum: an agent's run, or a framework's loop.
    const around = new Set(calls.flatMap(({ span }) => ancestors(span, byId).map(({ id }) => id)));
    const inner = calls.filter(({ span }) => !around.has(span.id));
    const ordered = inner.sort((a, b) => (a.span.start < b.span.start ? -1 : Number(a.span.start > b.span.start)));
    const task = taskOf(all);
    const scores: [string, number][] = Object.entries(Object.assign({}, ...all.map(({ scores }) => scores)));
    const numbers = scores.filter(([, value]) => Number.isFinite(value));
    return {
      trace,
      calls: ordered.map(({ call }) => call),
      scores: Object.fromEntries(numbers),
      unread: {
        calls: callSpans.filter(({ span, call }) => call === undefined && !around.has(span.id)).length,
        tasks: Number(all.some(({ attributes }) => !isObject(jsonOf(attributes['drmas.task.data'] ?? {})))),
        scores: scores.length - numbers.length,
      },
      ...(task === undefined ? {} : { task }),
    };
  });
}

/** Numbers of calls, of traces without another call, of tasks' data and of scores that cannot be read. */
export interface Unread {
  readonly calls: number;
  readonly traces: number;
  readonly tasks: number;
  readonly scores: number;
  /** One of the traces that have them. */
  readonly example?: string;
}

/** The sum of what cannot be read. */
export function unreadOf(episodes: readonly TracedEpisode[]): Unread {
  const sum = (kind: keyof TracedEpisode['unread']) => episodes.reduce((all, { unread }) => all + unread[kind], 0);
  const example = episodes.find(({ unread }) => Object.values(unread).some((count) => count > 0));
  return {
    calls: sum('calls'),
    traces: episodes.filter(({ calls, unread }) => calls.length === 0 && unread.calls > 0).length,
    tasks: sum('tasks'),
    scores: sum('scores'),
    ...(example === undefined ? {} : { example: example.trace }),
  };
}

function ancestors(span: TraceSpan, byId: ReadonlyMap<string, TraceSpan>): TraceSpan[] {
  const above: TraceSpan[] = [];
  let parent = byId.get(span.parent ?? '');
  while (parent !== undefined && !above.includes(parent)) {
    above.push(parent);
    parent = byId.get(parent.parent ?? '');
  }
  return above;
}

const CALLS = ['chat', 'generate_content', 'text_completion'];

const isOfSdk = ({ attributes }: TraceSpan) =>
  /\.do(Generate|Stream)$/.test(String(attributes['ai.operationId'] ?? ''));

const isCall = (span: TraceSpan) =>
  isOfSdk(span) || CALLS.includes(String(span.attributes['gen_ai.operation.name'] ?? ''));

/** A text that begins as messages do and is no JSON, such as one that a limit of the tracer cut off. */
const isBroken = (attribute: unknown) =>
  typeof attribute === 'string' && /^\s*(\[\s*)?\{/.test(attribute) && typeof jsonOf(attribute) === 'string';

/** The call of a span. Undefined if its messages or its answer cannot be read. */
function callOf(span: TraceSpan, byId: ReadonlyMap<string, TraceSpan>): ModelCall | undefined {
  const { attributes } = span;
  const answer = isOfSdk(span) ? sdkAnswer(attributes) : answerOf(attributes['gen_ai.output.messages']);
  const input = attributes['gen_ai.input.messages'] ?? attributes['ai.prompt.messages'];
  const read = messagesOf(input);
  if (answer === undefined || read.length === 0 || isBroken(input)) return undefined;
  const tools = toolsOf(attributes['gen_ai.tool.definitions'] ?? attributes['ai.prompt.tools']);
  const instructions = instructionsOf(attributes['gen_ai.system_instructions']);
  const system =
    instructions === '' || read[0]?.role === 'system' ? [] : [{ role: 'system' as const, content: instructions }];
  return {
    agent: [span, ...ancestors(span, byId)].map(agentName).find((name) => name !== undefined),
    model: textOf(attributes['gen_ai.request.model'] ?? attributes['ai.model.id']),
    messages: [...system, ...read],
    ...(tools === undefined ? {} : { tools }),
    answer,
    tokens: {
      read: Number(attributes['gen_ai.usage.input_tokens'] ?? 0),
      written: Number(attributes['gen_ai.usage.output_tokens'] ?? 0),
    },
  };
}

const agentName = ({ attributes }: TraceSpan) =>
  textOf(attributes['gen_ai.agent.name'] ?? attributes['ai.telemetry.functionId'] ?? attributes['gen_ai.agent.id']);

const textOf = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined);

/** The last message of the output; a plain text is an answer too. */
function answerOf(attribute: unknown): Message | undefined {
  const value = jsonOf(attribute);
  if (isBroken(attribute) || value === 'null') return undefined;
  if (typeof value === 'string') return { role: 'assistant', content: value };
  const [answer] = messagesOf(
    isObject(value) && value.role === undefined ? { role: 'assistant', ...value } : value,
  ).slice(-1);
  return answer?.role === 'assistant' && (answer.content !== '' || answer.toolCalls !== undefined) ? answer : undefined;
}

/** The answer in a span of AI SDK 5 and 6. `generateObject` and `streamObject` write it as an object. */
function sdkAnswer(attributes: Readonly<Record<string, unknown>>): Message | undefined {
  const content = attributes['ai.response.text'] ?? attributes['ai.response.object'] ?? '';
  const toolCalls = jsonOf(attributes['ai.response.toolCalls']);
  return answerOf({ role: 'assistant', content, ...(Array.isArray(toolCalls) ? { toolCalls } : {}) });
}

function instructionsOf(attribute: unknown): string {
  const value = jsonOf(attribute);
  if (typeof value === 'string') return value;
  return (Array.isArray(value) ? value : [])
    .map((part) => (isObject(part) ? String(part.content ?? part.text ?? '') : String(part)))
    .join('\n');
}

/** The task's data that drmas wrote, or the input of the outermost span if it is an object and no conversation. */
function taskOf(spans: readonly TraceSpan[]): Readonly<Record<string, unknown>> | undefined {
  const ids = new Set(spans.map(({ id }) => id));
  for (const { parent, attributes } of spans) {
    if (parent !== undefined && ids.has(parent)) continue;
    const [written, input] = [jsonOf(attributes['drmas.task.data']), attributes['gen_ai.input.messages']];
    if (isObject(written)) return written;
    if (isObject(input) && input.role === undefined && input.messages === undefined) return input;
  }
  return undefined;
}
