/** Anthropic's messages. */

import { type DialectError, exactJson, given, isObject, parseWithSource } from '@drmas/engine/errors';
import type { Message, Tool, ToolCall, ToolChoice } from '@drmas/engine/nouns';
import { z } from 'zod';
import { wholeDeltas } from './answer-parts.js';
import type { Dialect, ModelAnswer, ModelDelta, ModelRequest, StreamEvent } from './dialect.js';
import {
  checked,
  content,
  ignoredFields,
  jsonSchema,
  MOST_MESSAGES,
  nameText,
  optionalContent,
  otherTools,
  positive,
  presentFields,
  stopTexts,
  toolList,
  toolsOf,
  topKNumber,
} from './request-fields.js';

/** The blocks of a message's content. */
const block = z.discriminatedUnion(
  'type',
  [
    z.object({ type: z.literal('text'), text: z.string() }),
    z.object({
      type: z.literal('tool_use'),
      id: nameText,
      name: nameText,
      input: z.custom<object>(isObject, 'expected an object'),
    }),
    z.object({
      type: z.literal('tool_result'),
      tool_use_id: nameText,
      content: optionalContent,
      is_error: z.boolean().nullish(),
    }),
    z.object({ type: z.literal('thinking'), thinking: z.string().catch('') }),
    z.object({ type: z.literal('redacted_thinking') }),
  ],
  'expected blocks of text, tool_use or tool_result: these models read only text',
);
type Block = z.output<typeof block>;

const blocks = z.preprocess(
  (value) => (typeof value === 'string' ? [{ type: 'text', text: value }] : value),
  z.array(block).max(MOST_MESSAGES),
);

const message = z.object({ role: z.enum(['user', 'assistant', 'system']), content: blocks });

const tool = z
  .object({
    type: z.literal('custom', 'expected a custom tool: the server has no built-in tools').nullish(),
    name: nameText,
    description: z.string().nullish(),
    input_schema: jsonSchema,
    strict: z.boolean().nullish(),
  })
  .transform(({ name, description, input_schema: parameters, strict }): Tool => {
    return { name, parameters, ...given({ description, strict }) };
  });

const toolChoice = z.discriminatedUnion('type', [
  z.object({ type: z.enum(['auto', 'none']) }).transform(({ type }): ToolChoice => type),
  z.object({ type: z.literal('any') }).transform((): ToolChoice => 'required'),
  z.object({ type: z.literal('tool'), name: nameText }).transform(({ name }): ToolChoice => ({ name })),
]);

/** A body that wishes for one call at most. */
const oneCall = z.object({ tool_choice: z.object({ disable_parallel_tool_use: z.literal(true) }) });

const outputFormat = z.object({ type: z.literal('json_schema'), schema: jsonSchema });

const counted = z.object({
  model: nameText,
  messages: z.array(message).min(1).max(MOST_MESSAGES),
  system: content.nullish(),
  tools: toolList('custom', tool),
  tool_choice: toolChoice.nullish(),
  output_config: z.object({ format: outputFormat.nullish(), effort: z.unknown().optional() }).nullish(),
  output_format: outputFormat.nullish(),
});

const body = counted.extend({
  // A prefill is no message: the answer would have to continue it.
  messages: z
    .array(message)
    .min(1)
    .max(MOST_MESSAGES)
    .refine(
      (list) => list.at(-1)?.role !== 'assistant',
      "the last one is the assistant's, and no answer continues a message",
    ),
  max_tokens: positive,
  stream: z.boolean().nullish(),
  temperature: z.number().nullish(),
  top_p: z.number().nullish(),
  top_k: topKNumber.nullish(),
  stop_sequences: stopTexts.nullish(),
});

function read(value: unknown): ModelRequest {
  const request = checked(body, value);
  const { max_tokens: maxTokens, stream, temperature, top_p: topP, top_k: topK, stop_sequences: stop } = request;
  return {
    ...conversationOf(request),
    maxTokens,
    stream: stream === true,
    sampling: given({ temperature, topP, topK, stop }),
    ignored: [
      ...ignoredFields(value as object, body.shape),
      ...otherTools(value, 'custom'),
      ...presentFields(request.output_config ?? {}, ['effort']),
      ...(request.messages.some(({ content }) => content.some(isError)) ? ['is_error'] : []),
      ...(oneCall.safeParse(value).success ? ['disable_parallel_tool_use'] : []),
    ],
  };
}

/** Reads a request to count the tokens of a conversation, which has no length of an answer. @throws DialectError */
export function readCounted(value: unknown): ModelRequest {
  return conversationOf(checked(counted, value));
}

function conversationOf(request: z.output<typeof counted>): ModelRequest {
  const { model, messages, system, tools, tool_choice } = request;
  const schema = (request.output_config?.format ?? request.output_format)?.schema;
  const instructions = system ? [{ role: 'system', content: system } as const] : [];
  return {
    model,
    stream: false,
    streamUsage: true,
    wantsTokenIds: false,
    sampling: {},
    ignored: [],
    messages: [...instructions, ...messages.flatMap(messagesOf)],
    ...toolsOf(tools, tool_choice ?? undefined),
    ...given({ responseSchema: schema }),
  };
}

/** Each tool result is a separate message. */
function messagesOf({ role, content }: z.output<typeof message>): Message[] {
  const text = content.map((each) => (each.type === 'text' ? each.text : '')).join('');
  const reasoning = content.map((each) => (each.type === 'thinking' ? each.thinking : '')).join('');
  const toolCalls = content.filter((each) => each.type === 'tool_use').map(callOf);
  const results = content
    .filter((each) => each.type === 'tool_result')
    .map((each): Message => ({ role: 'tool', content: each.content, toolCallId: each.tool_use_id }));
  const onlyResults = results.length > 0 && !content.some(({ type }) => type === 'text');
  const spoken = onlyResults
    ? []
    : [
        {
          role,
          content: text,
          ...given({ reasoning: reasoning || undefined, toolCalls: toolCalls.length > 0 ? toolCalls : undefined }),
        },
      ];
  return [...results, ...spoken];
}

/** Models read the text of a result; no template has a place for this flag. */
const isError = (each: Block) => each.type === 'tool_result' && each.is_error === true;

const callOf = ({ id, name, input }: Extract<Block, { type: 'tool_use' }>): ToolCall => ({
  id,
  name,
  arguments: exactJson(input),
});

const STOP_REASONS = { stop: 'end_turn', length: 'max_tokens', tool_calls: 'tool_use' } as const;

/** Why an answer ended. A stop text beside calls does not count: the client has to answer the calls. */
const endOf = ({ finishReason, stopText }: ModelAnswer) =>
  finishReason === 'stop' && stopText !== undefined
    ? { stop_reason: 'stop_sequence', stop_sequence: stopText }
    : { stop_reason: STOP_REASONS[finishReason], stop_sequence: null };

const counts = (input_tokens: number, output_tokens: number) => ({
  input_tokens,
  output_tokens,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
});

const shell = (id: string, model: string) => ({
  id,
  type: 'message',
  role: 'assistant',
  model,
});

/** The arguments of a call as the object that they are, with all digits of its numbers: `exactJson` writes them. */
function inputOf({ arguments: text }: ToolCall): unknown {
  try {
    return parseWithSource(text);
  } catch {
    return {}; // the reply of a user's own server need not be JSON
  }
}

function write(_request: ModelRequest, answer: ModelAnswer): object {
  const { id, model, content, reasoning, toolCalls, usage } = answer;
  return {
    ...shell(id, model),
    content: [
      ...(reasoning ? [{ type: 'thinking', thinking: reasoning, signature: '' }] : []),
      ...(content === '' ? [] : [{ type: 'text', text: content }]),
      ...toolCalls.map((call) => ({ type: 'tool_use', id: call.id, name: call.name, input: inputOf(call) })),
    ],
    ...endOf(answer),
    usage: counts(usage.promptTokens, usage.responseTokens),
  };
}

async function* stream({ model }: ModelRequest, deltas: AsyncIterable<ModelDelta>): AsyncIterable<StreamEvent> {
  let index = 0;
  let open: 'text' | 'reasoning' | undefined;
  const start = (content_block: object) => event('content_block_start', { index, content_block });
  const grow = (delta: object) => event('content_block_delta', { index, delta });
  const stop = () => event('content_block_stop', { index: index++ });
  for await (const delta of wholeDeltas(deltas)) {
    if (delta.type === 'begin') {
      const message = {
        ...shell(delta.id, model),
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: counts(delta.promptTokens, 0),
      };
      yield event('message_start', { message });
      continue;
    }
    if (open !== undefined && open !== delta.type) {
      if (open === 'reasoning') yield grow({ type: 'signature_delta', signature: '' });
      yield stop();
      open = undefined;
    }
    if (delta.type === 'answer') {
      const { toolCalls, usage } = delta.answer;
      for (const { id, name, arguments: partial_json } of toolCalls) {
        yield start({ type: 'tool_use', id, name, input: {} });
        yield grow({ type: 'input_json_delta', partial_json });
        yield stop();
      }
      yield event('message_delta', {
        delta: endOf(delta.answer),
        usage: counts(usage.promptTokens, usage.responseTokens),
      });
      yield event('message_stop', {});
    } else {
      const { type, text } = delta;
      if (open === undefined)
        yield start(type === 'text' ? { type, text: '' } : { type: 'thinking', thinking: '', signature: '' });
      open = type;
      yield grow(type === 'text' ? { type: 'text_delta', text } : { type: 'thinking_delta', thinking: text });
    }
  }
}

const event = (type: string, fields: object): StreamEvent => ({
  event: type,
  data: exactJson({ type, ...fields }),
});

const ERROR_TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  503: 'overloaded_error',
};

function error({ status, code, message }: DialectError): object {
  const type = ERROR_TYPES[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error');
  return { type: 'error', error: { type, message, code } };
}

export const messagesDialect: Dialect = {
  read,
  write,
  stream,
  error,
  streamError: (refusal) => ({ event: 'error', data: JSON.stringify(error(refusal)) }),
};
