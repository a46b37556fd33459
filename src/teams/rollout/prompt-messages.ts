import {
  ArgumentError,
  exactJson,
  given,
  isObject,
  jsonObject,
  parseWithSource,
  plainCopy,
  shown,
} from '@drmas/engine/errors';
import { type JsonSchema, type Message, system, user } from '@drmas/engine/nouns';
import { endOfJson } from '@drmas/engine/tool-calls';

const DEMAND = 'Answer with JSON of this schema alone: ';
/** Without properties a schema says nothing more, and models would copy it. */
const ANY_DEMAND = 'Answer with JSON alone.';

/**
 * The messages that an agent reads: its system prompt, if any, and the input. A string is one user message. The schema
 * of a response is at the end of the first system message, since some templates allow only one.
 * @param foreign Whether a program that brings its own system prompt wrote the input. The agent's then replaces it
 * @throws ArgumentError for values that only untyped programs, or tasks unchecked by the team's schema, can pass
 */
export function promptMessages(
  prompt: string | undefined,
  input: string | readonly Message[],
  responseSchema?: JsonSchema,
  foreign = false,
): Message[] {
  const messages = typeof input === 'string' ? [user(input)] : input;
  requireMessages(messages);
  // The team may change its own later. Rows of data sets, and servers' messages, have null for what they lack.
  const copies = messages.map((message) => plainCopy(given(message)) as Message);
  const replaced = foreign && prompt !== undefined && copies[0]?.role === 'system' ? copies.slice(1) : copies;
  const read = prompt === undefined ? copies : [system(prompt), ...replaced];
  return responseSchema === undefined ? read : demanding(read, responseSchema);
}

function demanding(messages: readonly Message[], responseSchema: JsonSchema): Message[] {
  const demand = isAnyObject(responseSchema) ? ANY_DEMAND : DEMAND + exactJson(responseSchema);
  const [first, ...rest] = messages;
  return first?.role === 'system'
    ? [{ ...first, content: `${first.content}\n${demand}` }, ...rest]
    : [system(demand), ...messages];
}

/**
 * The messages as an agent reads them if its response must fit this schema, or has no schema. Another demand in the
 * first system message is taken away.
 */
export function redemanded(messages: readonly Message[], responseSchema: JsonSchema | undefined): Message[] {
  const [first, ...rest] = messages;
  const free = first?.role === 'system' ? undemanded(first.content) : undefined;
  const kept =
    free === '' ? rest : free === undefined || first === undefined ? messages : [{ ...first, content: free }, ...rest];
  return responseSchema === undefined ? [...kept] : demanding(kept, responseSchema);
}

export function undemanded(prompt: string): string {
  const place = prompt.indexOf(DEMAND);
  if (place < 0 && prompt.endsWith(ANY_DEMAND)) return prompt.slice(0, -ANY_DEMAND.length).replace(/\n$/, '');
  const end = place < 0 ? undefined : endOfJson(prompt, place + DEMAND.length);
  if (end === undefined) return prompt;
  return `${prompt.slice(0, place).replace(/\n$/, '')}${prompt.slice(end)}`;
}

export function demandedSchema(prompt: string): JsonSchema | undefined {
  const place = prompt.indexOf(DEMAND);
  const start = place + DEMAND.length;
  if (place < 0) return prompt.includes(ANY_DEMAND) ? { type: 'object' } : undefined;
  const text = prompt.slice(start, endOfJson(prompt, start));
  return jsonObject(text) === undefined ? undefined : (parseWithSource(text) as JsonSchema);
}

/** Whether any object fits: `response_format: { type: 'json_object' }`, and AI SDK's `json` without a schema. */
export const isAnyObject = (schema: JsonSchema) =>
  Object.keys(schema).every((key) => key === 'type') && (schema.type === undefined || schema.type === 'object');

const ROLES: readonly unknown[] = ['system', 'user', 'assistant', 'tool'] satisfies Message['role'][];
/** The fields of messages whose names OpenAI writes with `_`: with those names they would be lost. */
const RENAMED = {
  tool_calls: 'toolCalls',
  tool_call_id: 'toolCallId',
  reasoning_content: 'reasoning',
} satisfies Record<string, keyof Message>;

function requireMessages(messages: unknown): void {
  if (!Array.isArray(messages))
    throw new ArgumentError(`expected a text or a list of messages, got ${kindOf(messages)}`);
  for (const [i, message] of messages.entries()) {
    const fault = faultOf(isObject(message) ? message : {});
    if (fault !== undefined) throw new ArgumentError(`message ${i + 1}: ${fault}`);
  }
}

function faultOf({ role, content, toolCalls, reasoning, ...others }: Record<string, unknown>): string | undefined {
  if (typeof content !== 'string') return `expected a text as its content, got ${kindOf(content)}`;
  if (!ROLES.includes(role)) return `expected one of the roles ${ROLES.join(', ')}, got ${shown(role)}`;
  for (const [written, name] of Object.entries(RENAMED))
    if (!isEmpty(others[written])) return `expected ${name}, got ${written}`;
  const isCall = (call: unknown) =>
    isObject(call) && [call.id, call.name, call.arguments].every((field) => typeof field === 'string');
  if (!isEmpty(reasoning) && typeof reasoning !== 'string')
    return `expected reasoning as a text, got ${shown(reasoning)}`;
  if (!isEmpty(toolCalls) && !(Array.isArray(toolCalls) && toolCalls.every(isCall)))
    return `expected toolCalls as a list of { id, name, arguments } with texts, got ${shown(toolCalls)}`;
  return undefined;
}

const isEmpty = (value: unknown) =>
  value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0);

const kindOf = (value: unknown) =>
  value === null || value === undefined ? String(value) : `a value of type ${typeof value}`;
