/** The responses interface of OpenAI, as far as it needs no state between requests. */

import { DialectError, given, isObject } from '@drmas/engine/errors';
import type { Message, Tool, ToolCall, ToolChoice } from '@drmas/engine/nouns';
import { z } from 'zod';
import { openAiError } from './answer-parts.js';
import type { Dialect, ModelRequest, Recall, Said } from './dialect.js';
import {
  callArguments,
  checked,
  content,
  ignoredFields,
  jsonSchema,
  MOST_MESSAGES,
  nameText,
  only,
  otherTools,
  presentFields,
  tokenLimit,
  toolList,
  toolsOf,
} from './request-fields.js';
import { responseErrorEvent, responseEvents, responseObject } from './responses-answer.js';

const STATELESS = 'nothing is kept between requests: send the whole conversation as input, with store: false';

/** An item without a type is a message, or, if it has an id alone, a reference: OpenAI's type for it may be null. */
const typed = (item: unknown) =>
  isObject(item) && (item.type ?? undefined) === undefined
    ? { ...item, type: 'id' in item && !('role' in item) ? 'item_reference' : 'message' }
    : item;

/** The text of thoughts, as drmas writes it. Others write summaries, or nothing that can be read. */
const thoughts = z
  .array(z.object({ text: z.string() }).catch({ text: '' }))
  .catch([])
  .transform((parts) => parts.map(({ text }) => text).join(''));

/** Messages, calls of the assistant, and thoughts before them. */
const item = z.preprocess(
  typed,
  z.discriminatedUnion('type', [
    z.object({
      type: z.literal('message'),
      id: z.string().nullish(),
      role: z.enum(['system', 'developer', 'user', 'assistant']),
      content,
    }),
    z.object({ type: z.literal('function_call'), call_id: nameText, name: nameText, arguments: callArguments }),
    z.object({ type: z.literal('function_call_output'), call_id: nameText, output: content }),
    z.object({ type: z.literal('reasoning'), content: thoughts }),
    z.object({ type: z.literal('item_reference'), id: nameText }),
  ]),
);

const tool = z
  .object({
    type: z.literal('function', 'expected a function: the server has no built-in tools'),
    name: nameText,
    description: z.string().nullish(),
    parameters: jsonSchema.nullish(),
    strict: z.boolean().nullish(),
  })
  .transform(({ name, description, parameters, strict }): Tool => {
    return { name, parameters: parameters ?? { type: 'object', properties: {} }, ...given({ description, strict }) };
  });

const toolChoice = z.union(
  [
    z.enum(['auto', 'none', 'required']),
    z.object({ type: z.literal('function'), name: nameText }).transform(({ name }): ToolChoice => ({ name })),
  ],
  "expected 'auto', 'none', 'required' or { type: 'function', name }",
);

const format = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text') }),
  z.object({ type: z.literal('json_object') }),
  z.object({ type: z.literal('json_schema'), schema: jsonSchema }),
]);

const body = z.object({
  model: nameText,
  input: z
    .union([z.string(), z.array(z.unknown())], 'expected a text or a list of items')
    .pipe(
      z.preprocess(
        (value) => (typeof value === 'string' ? [{ role: 'user', content: value }] : value),
        z.array(item).min(1).max(MOST_MESSAGES),
      ),
    ),
  instructions: z.string().nullish(),
  metadata: z.unknown().optional(), // a label
  tools: toolList('function', tool),
  tool_choice: toolChoice.nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  max_output_tokens: tokenLimit,
  stream: z.boolean().nullish(),
  stream_options: z.unknown().optional(), // only about the padding of events
  text: z.object({ format: format.nullish(), verbosity: z.unknown().optional() }).nullish(),
  temperature: z.number().nullish(),
  top_p: z.number().nullish(),
  previous_response_id: only(() => false, STATELESS),
  conversation: only(() => false, STATELESS),
  prompt: only(() => false, 'prompts that OpenAI keeps are not here; send input'),
  background: only((value) => value === false, 'there is no work in the background'),
});

function read(value: unknown, recall: Recall = () => undefined): ModelRequest {
  const request = checked(body, value);
  const { model, input, instructions, tools, tool_choice, temperature, top_p: topP } = request;
  const form = request.text?.format;
  return {
    model,
    stream: request.stream === true,
    streamUsage: true,
    wantsTokenIds: false,
    messages: [
      ...(instructions ? [{ role: 'system', content: instructions } as const] : []),
      ...messagesOf(withoutReferences(input, recall)),
    ],
    ...toolsOf(tools, tool_choice ?? undefined),
    ...given({ maxTokens: request.max_output_tokens }),
    ...(form?.type === 'json_schema' ? { responseSchema: form.schema } : {}),
    ...(form?.type === 'json_object' ? { responseSchema: { type: 'object' } } : {}),
    sampling: given({ temperature, topP }),
    repeated: { ...given({ instructions }), ...(isObject(request.metadata) ? { metadata: request.metadata } : {}) },
    ignored: [
      ...ignoredFields(value as object, body.shape),
      ...otherTools(value, 'function'),
      ...presentFields(request.text ?? {}, ['verbosity']),
      ...(request.parallel_tool_calls === false ? ['parallel_tool_calls'] : []),
    ],
  };
}

type InputItem = z.output<typeof item>;

/** The items, with references replaced by the items that they name. @throws DialectError for an unknown reference */
function withoutReferences(items: readonly InputItem[], recall: Recall): InputItem[] {
  const recallCalls = callsById(recall);
  return items.map((each, index) => {
    const named = each.type === 'item_reference' ? itemOf(each.id, recallCalls) : each;
    if (named !== undefined) return named;
    throw new DialectError(400, 'invalid_request', `input.${index}: ${STATELESS}`, `input[${index}]`);
  });
}

type SaidById = { readonly content: string; readonly calls: ReadonlyMap<string, Said['toolCalls'][number]> };

/** Finds earlier answers with their calls by id: a request may name thousands. */
function callsById(recall: Recall): (id: string) => SaidById | undefined {
  const known = new Map<string, SaidById | undefined>();
  return (id) => {
    if (!known.has(id)) {
      const said = recall(id);
      const calls = new Map(said?.toolCalls.map((call) => [call.id, call]));
      known.set(id, said && { content: said.content, calls });
    }
    return known.get(id);
  };
}

/** The item of an earlier answer. Its thoughts are ignored. */
function itemOf(id: string, recall: ReturnType<typeof callsById>): InputItem | undefined {
  const [, kind, name = ''] = /^(rs|msg|fc)_(.+)$/.exec(id) ?? [];
  if (kind === 'rs') return { type: 'reasoning', content: '' };
  if (kind === 'msg') {
    const content = recall(name)?.content;
    return content === undefined ? undefined : { type: 'message', id, role: 'assistant', content };
  }
  const [, turn = ''] = /^call_(.+)_\d+$/.exec(name) ?? [];
  const call = recall(turn)?.calls.get(name);
  return call && { type: 'function_call', call_id: name, name: call.name, arguments: call.arguments };
}

/**
 * The messages of items. Calls belong to the assistant's message directly before them, if there is one, and thoughts to
 * the message or call behind them. A conversation may have several thoughts in a row, and thoughts between calls.
 */
function messagesOf(items: readonly InputItem[]): Message[] {
  const messages: Message[] = [];
  let thought = '';
  /** The calls of the last message, if it is the assistant's and has any. */
  let calls: ToolCall[] | undefined;
  for (const each of items) {
    if (each.type === 'reasoning') {
      thought += each.content;
      continue;
    }
    if (each.type === 'function_call') {
      const before = messages.at(-1)?.role === 'assistant' ? messages.pop() : undefined;
      const reasoning = `${before?.reasoning ?? ''}${thought}` || undefined;
      calls ??= [];
      calls.push({ id: each.call_id, name: each.name, arguments: each.arguments });
      messages.push({ role: 'assistant', content: '', ...before, ...given({ reasoning }), toolCalls: calls });
    } else {
      calls = undefined;
      if (each.type === 'function_call_output')
        messages.push({ role: 'tool', content: each.output, toolCallId: each.call_id });
      else if (each.type === 'message') {
        const role = each.role === 'developer' ? 'system' : each.role;
        const turnId = role === 'assistant' ? /^msg_(.+)$/.exec(each.id ?? '')?.[1] : undefined;
        const reasoning = role === 'assistant' ? thought || undefined : undefined;
        messages.push({ role, content: each.content, ...given({ turnId, reasoning }) });
      }
    }
    thought = '';
  }
  return messages;
}

export const responsesDialect: Dialect = {
  read,
  write: responseObject,
  stream: responseEvents,
  error: openAiError,
  streamError: responseErrorEvent,
};
