/** The calls of models in traces: the caller, the messages, and the tokens. */
import { exactJson, isObject } from '@drmas/engine/errors';
import type { Message, Tool, ToolCall } from '@drmas/engine/nouns';
import { isCallOf } from '@drmas/engine/tool-calls';
import { answerOf, reportEnd, reportEndOfReply } from './answers.js';
import { agentName, agentOfGraph, isCall, isOfSdk, isScorer, isTool, tokensOf, told } from './conventions.js';
import { conversationOf, instructionsOf, type Report } from './messages.js';
import { toolsIn, toolsOf } from './offered-tools.js';
import { isEmpty, jsonOf, merged, type TraceSpan, wordOf } from './span-fields.js';
import { messagesInEvents } from './spans.js';
import type { TracePlace, UnreadReason } from './unread.js';

export interface ModelCall {
  /** Undefined if neither the span nor one around it names an agent. */
  readonly agent: string | undefined;
  readonly model: string | undefined;
  /** With the system prompt, if there was one, as the first message. */
  readonly messages: readonly Message[];
  readonly tools?: readonly Tool[];
  readonly answer: Message;
  readonly tokens: { readonly read: number; readonly written: number };
  readonly place: TracePlace;
}

/** A trace: one execution of a team in production. */
export interface TracedEpisode {
  readonly trace: string;
  /** The place of its first row. */
  readonly place: TracePlace | undefined;
  /** Empty if no call can be read. */
  readonly calls: readonly ModelCall[];
  readonly scores: Readonly<Record<string, number>>;
  readonly task?: Readonly<Record<string, unknown>>;
  readonly unread: readonly UnreadPart[];
}

interface UnreadPart {
  readonly reason: UnreadReason;
  readonly place: TracePlace;
}

/** @param limit The length at which the tracer cut texts off, if it did */
export function tracedEpisode(trace: string, spans: readonly TraceSpan[], limit?: number): TracedEpisode {
  const all = spansWithEvents(spans);
  const byId = new Map(all.map((span) => [span.id, span])); // an exporter that tries again writes a span twice
  const ancestors = ancestorsIn(byId);
  const nameOf = remembered(agentName);
  const agentOf = (span: TraceSpan) =>
    nameOf(span) ?? nameOf(ancestors(span).find((above) => nameOf(above) !== undefined)) ?? agentOfGraph(span);
  const isJudge = remembered(isScorer);
  const isJudging = (span: TraceSpan) => ancestors(span).some((above) => isJudge(above) === true);
  const judging = { call: undefined, unread: ['judge'] } as const;
  const callSpans = [...byId.values()]
    .filter(isCall)
    .map((span) => ({ span, ...(isJudging(span) ? judging : callOf(span, agentOf, limit)) }));
  const calls = callSpans.flatMap(({ span, call }) => (call === undefined ? [] : [{ span, call }]));
  // A call around other calls is their sum: an agent's run, or a framework's loop. A tool calls models on its own.
  const isToolSpan = remembered(isTool);
  const summing = (span: TraceSpan) => {
    const above = ancestors(span);
    const tool = above.findIndex((each) => isToolSpan(each) === true);
    return tool < 0 ? above : above.slice(0, tool);
  };
  const around = new Set(calls.flatMap(({ span }) => summing(span).map(({ id }) => id)));
  const inner = calls.filter(({ span }) => !around.has(span.id));
  const ordered = inner.sort((a, b) => (a.span.start < b.span.start ? -1 : Number(a.span.start > b.span.start)));
  const { task, further } = tasksOf(all, byId, ancestors);
  const { scores, unread: unreadScores } = scoresOfTrace(spans);
  const read = new Set(inner.map(({ span }) => span.id));
  const answers = new Set(inner.map(({ span }) => answerId(span)));
  /** A call that two instrumentations recorded is read once, from the one that has its messages. */
  const isTold = (span: TraceSpan) =>
    around.has(span.id) ||
    summing(span).some(({ id }) => read.has(id)) ||
    (answerId(span) !== '' && answers.has(answerId(span)));
  const unreadCalls = callSpans.flatMap(({ span, unread, call }) =>
    call === undefined && isTold(span) ? [] : around.has(span.id) ? [] : unread.map((reason) => part(reason, span)),
  );
  return {
    trace,
    place: spans[0]?.place,
    calls: ordered.map(({ call }) => call),
    scores,
    unread: [
      ...unreadCalls,
      ...unreadTrace(spans, all, callSpans.length > 0),
      ...unreadScores,
      ...(Object.keys(scores).length > 0 && task?.score !== undefined
        ? spans.slice(0, 1).map((span) => part('taken', span))
        : []),
      ...all.filter(({ attributes }) => !isObject(jsonOf(attributes[TASK] ?? {}))).map((span) => part('task', span)),
      ...further.map((span) => part('tasks', span)),
    ],
    ...(task === undefined ? {} : { task }),
  };
}

/** The provider's id of the answer; empty if the span does not have it. */
const answerId = ({ attributes }: TraceSpan) => wordOf(attributes['gen_ai.response.id']);

/** A function of spans that is computed once for each: a span may stand around thousands. */
function remembered<Value>(of: (span: TraceSpan) => Value): (span: TraceSpan | undefined) => Value | undefined {
  const known = new Map<TraceSpan, Value>();
  return (span) => {
    if (span !== undefined && !known.has(span)) known.set(span, of(span));
    return span && known.get(span);
  };
}

const part = (reason: UnreadReason, { place }: Pick<TraceSpan, 'place'>): UnreadPart => ({ reason, place });

function unreadTrace(spans: readonly TraceSpan[], all: readonly TraceSpan[], hasCalls: boolean): UnreadPart[] {
  const [first] = spans;
  if (hasCalls || first === undefined) return [];
  return all.length > 0 ? [part('trace', all[0] ?? first)] : first.kind === 'score' ? [part('lone', first)] : [];
}

/** The mean of the scores of each name. An exporter that tries again writes a span or a score twice. */
function scoresOfTrace(spans: readonly TraceSpan[]): Pick<TracedEpisode, 'scores' | 'unread'> {
  const given = spans.flatMap((span, i) => {
    const row = span.kind === undefined ? span.id : i;
    return span.scores.map(({ id, ...score }, at) => {
      return { ...score, span, key: exactJson([score.name, ...(id === undefined ? [row, at] : [id])]) };
    });
  });
  const byName = new Map<string, (typeof given)[number][]>();
  for (const score of new Map(given.map((each) => [each.key, each])).values()) {
    const others = byName.get(score.name);
    if (others === undefined) byName.set(score.name, [score]);
    else others.push(score);
  }
  const scores: [string, number][] = [];
  const unread: UnreadPart[] = [];
  for (const [name, all] of byName) {
    const numbers = all.filter(({ value }) => Number.isFinite(value));
    const [first, ...more] = numbers;
    const broken = all.find(({ value }) => !Number.isFinite(value));
    if (broken !== undefined) unread.push(part('score', broken.span));
    if (first === undefined) continue;
    scores.push([name, numbers.reduce((sum, { value }) => sum + value, 0) / numbers.length]);
    if (more.some(({ value }) => value !== first.value))
      for (const { span } of more) unread.push(part('several', span));
  }
  return { scores: Object.fromEntries(scores), unread };
}

/**
 * The spans with the messages that stand in their events, in logs too. Rows that are no spans are left out. Logs of a
 * span that is not in the files stand for it.
 */
function spansWithEvents(spans: readonly TraceSpan[]): TraceSpan[] {
  const logged = new Map<string, TraceSpan[]>();
  for (const span of spans) {
    if (span.kind !== 'event') continue;
    const logs = logged.get(span.id);
    if (logs === undefined) logged.set(span.id, [span]);
    else logs.push(span);
  }
  const present = new Set(spans.flatMap(({ kind, id }) => (kind === undefined ? [id] : [])));
  const absent = Array.from(logged, ([id, [first]]) => (first === undefined || present.has(id) ? [] : [first])).flat();
  const standIns = absent.map(({ kind: _, events: __, ...log }): TraceSpan => ({ ...log, attributes: {} }));
  return [...spans, ...standIns].flatMap((span) => {
    if (span.kind !== undefined) return [];
    const logs = (logged.get(span.id) ?? []).sort((a, b) => (a.start < b.start ? -1 : Number(a.start > b.start)));
    // An instrumentation may write each message twice: as an event of the span, and as a log.
    const { events: own = [] } = span;
    const events = own.length > 0 ? own : logs.flatMap((log) => log.events ?? []);
    const attributes = merged([messagesInEvents(events), ...logs.map((log) => log.attributes), span.attributes]);
    return [{ ...span, attributes, dropped: [span, ...logs].some(({ dropped }) => dropped) }];
  });
}

/** The most spans around a span that are looked at. No program nests so many. */
const MOST_AROUND = 1000;

/** The spans around a span. None if one of them names the span as its parent again, which tells nothing. */
function ancestorsIn(byId: ReadonlyMap<string, TraceSpan>): (span: TraceSpan) => readonly TraceSpan[] {
  // The last answer alone is kept: spans that share a parent come together, and nested ones would keep a list each.
  let last: { readonly parent: string; readonly above: readonly TraceSpan[] } | undefined;
  return (span) => {
    const parent = span.parent ?? '';
    if (last?.parent !== parent) last = { parent, above: chainFrom(parent, byId) };
    return last.above.includes(span) ? [] : last.above;
  };
}

function chainFrom(id: string, byId: ReadonlyMap<string, TraceSpan>): readonly TraceSpan[] {
  const above = new Set<TraceSpan>();
  let next = byId.get(id);
  while (next !== undefined && !above.has(next) && above.size < MOST_AROUND) {
    above.add(next);
    next = byId.get(next.parent ?? '');
  }
  return [...above];
}

/** A limit of so few tokens ends an answer on purpose, such as a single word. */
const SHORTEST = 8;

/** The beginning of a conversation that was written as one text. Older versions of OpenLIT do so. */
const TRANSCRIPT = /^(?:system|user|assistant|tool): /;

/** Reasons for which a call is read without a part of it. */
const WITHOUT_A_PART: readonly UnreadReason[] = ['tool', 'choice', 'reasoning'];

/** A call, and what of it cannot be read. Undefined if that is the messages, the answer, or a part of these. */
function callOf(
  span: TraceSpan,
  agentOf: (span: TraceSpan) => string | undefined,
  limit: number | undefined,
): { readonly call?: ModelCall; readonly unread: readonly UnreadReason[] } {
  const { attributes, failed, dropped } = span;
  const unread = new Set<UnreadReason>(dropped ? ['dropped'] : []);
  const report: Report = (reason) => void unread.add(reason);
  const input = told(attributes, 'input');
  if (input === attributes['gen_ai.prompt'] && TRANSCRIPT.test(wordOf(input))) report('input');
  // Models do not read the reasoning of earlier answers again.
  const read = conversationOf(input, (reason) => reason === 'reasoning' || report(reason));
  const answer = hasSdkAnswer(attributes)
    ? sdkAnswer(attributes, report)
    : answerOf(told(attributes, 'output'), report);
  // A reply of OpenAI's Responses repeats the tools and the instructions of its request.
  const output = jsonOf(told(attributes, 'output'));
  const reply = isObject(output) && output.object === 'response' ? output : {};
  const requests = [input, told(attributes, 'request'), reply].map((each) => toolsIn(jsonOf(each)));
  const tools = toolsOf(told(attributes, 'tools') ?? requests.find((each) => each !== undefined), report);
  const instructions = instructionsOf(told(attributes, 'instructions') ?? reply.instructions, report);
  const isGiven = instructions === '' || (read[0]?.role === 'system' && read[0].content === instructions);
  const messages: Message[] = isGiven ? read : [{ role: 'system', content: instructions }, ...read];
  const conversation = messages[0]?.role === 'system' ? messages.slice(1) : messages;
  if (conversation.length === 0) report('input');
  if (conversation.some(({ role }) => role === 'system')) report('system');
  if (conversation.find((message) => message.role === 'tool' || hasCalls(message))?.role === 'tool') report('gap');
  const listed = new Map(tools?.map((tool) => [tool.name, tool]));
  if (answer?.toolCalls?.some(({ name }) => !listed.has(name))) report('unlisted');
  if (answer?.toolCalls?.some((each) => !fits(each, listed.get(each.name)))) report('arguments');
  if (answer === undefined) report('answer');
  if ([...messages, answer].some((each) => each?.content.length === limit)) report('cut');
  reportEnd(told(attributes, 'finish'), report);
  reportEndOfReply(told(attributes, 'reply'), report);
  const tokens = tokensOf(attributes);
  if (tokens.written > 0 && tokens.written <= SHORTEST) unread.delete('unfinished');
  const [worst] = failed ? ['failed' as const] : [...unread].filter((reason) => !WITHOUT_A_PART.includes(reason));
  if (answer === undefined || worst !== undefined) return { unread: [worst ?? 'answer'] };
  const model = told(attributes, 'model');
  const call: ModelCall = {
    agent: agentOf(span),
    model: typeof model === 'string' ? model : undefined,
    messages,
    ...(tools === undefined ? {} : { tools }),
    answer,
    tokens,
    place: span.place,
  };
  return { call, unread: [...unread] };
}

/** Whether an agent may write a call. A schema may take more steps than a check does. */
function fits(call: ToolCall, tool: Tool | undefined): boolean {
  try {
    return tool === undefined || isCallOf(call, [tool]);
  } catch {
    return false;
  }
}

const hasCalls = ({ toolCalls }: Message) => toolCalls !== undefined;

/** Langfuse takes the answer out of the attributes. */
const hasSdkAnswer = (attributes: TraceSpan['attributes']) =>
  isOfSdk(attributes) &&
  ['text', 'object', 'toolCalls', 'files'].some((name) => !isEmpty(attributes[`ai.response.${name}`]));

/** The answer in a span of AI SDK 5 and 6. `generateObject` and `streamObject` write it as an object. */
function sdkAnswer(attributes: TraceSpan['attributes'], report: Report): Message | undefined {
  const { 'ai.response.text': text, 'ai.response.object': object, 'ai.response.reasoning': reasoning } = attributes;
  if (!isEmpty(jsonOf(attributes['ai.response.files']))) report('media');
  if (typeof reasoning === 'string' && reasoning !== '') report('reasoning');
  const toolCalls = jsonOf(attributes['ai.response.toolCalls']);
  const calls = Array.isArray(toolCalls) ? { toolCalls } : {};
  return answerOf({ role: 'assistant', content: (isEmpty(text) ? object : text) ?? '', ...calls }, report);
}

/** The attribute with the task's data that drmas, or a program for drmas, writes. */
const TASK = 'drmas.task.data';

/**
 * The data of the task, which a span inside that of a server may have, or the input of the outermost span if it is an
 * object and no conversation. Other data in other spans are further tasks, except in spans around which the task is.
 */
function tasksOf(
  spans: readonly TraceSpan[],
  byId: ReadonlyMap<string, TraceSpan>,
  ancestors: ReturnType<typeof ancestorsIn>,
): Pick<TracedEpisode, 'task'> & { readonly further: readonly TraceSpan[] } {
  const dataOf = remembered(({ attributes }) => jsonOf(attributes[TASK]));
  const hasData = (span: TraceSpan) => isObject(dataOf(span));
  const [first, ...more] = spans.filter((span) => hasData(span) && !ancestors(span).some(hasData));
  const task = dataOf(first);
  if (isObject(task)) return { task, further: more.filter((span) => exactJson(dataOf(span)) !== exactJson(task)) };
  for (const span of spans) {
    if (span.parent !== undefined && byId.has(span.parent)) continue;
    const input = isCall(span) ? undefined : jsonOf(told(span.attributes, 'task'));
    if (isObject(input) && input.role === undefined && input.messages === undefined)
      return { task: input, further: [] };
  }
  return { further: [] };
}
