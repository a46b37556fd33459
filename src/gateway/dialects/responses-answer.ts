/** The answers of the responses interface: the object, and the events by which a stream builds it up. */
import { type DialectError, exactJson } from '@drmas/engine/errors';
import type { ToolCall } from '@drmas/engine/nouns';
import { epochSeconds, openAiError, wholeDeltas } from './answer-parts.js';
import type { ModelAnswer, ModelDelta, ModelRequest, StreamEvent } from './dialect.js';

interface OutputItem {
  readonly type: 'reasoning' | 'message' | 'function_call';
  readonly id: string;
  readonly [field: string]: unknown;
}

const textPart = (text: string) => ({ type: 'output_text', text, annotations: [], logprobs: [] });
const thoughtPart = (text: string) => ({ type: 'reasoning_text', text });

/** The three kinds of items, each with a text: a thought, a message, a call's arguments. */
const items = {
  reasoning: (id: string, text: string): OutputItem => ({
    type: 'reasoning',
    id: `rs_${id}`,
    summary: [],
    content: [thoughtPart(text)],
  }),
  message: (id: string, text: string, status = 'completed'): OutputItem => ({
    type: 'message',
    id: `msg_${id}`,
    role: 'assistant',
    status,
    content: status === 'in_progress' ? [] : [textPart(text)],
  }),
  call: ({ id, name }: { id: string; name: string }, text: string, status = 'completed'): OutputItem => ({
    type: 'function_call',
    id: `fc_${id}`,
    call_id: id,
    name,
    arguments: text,
    status,
  }),
};

const endOf = ({ finishReason }: ModelAnswer) => (finishReason === 'length' ? 'incomplete' : 'completed');

function outputOf(answer: ModelAnswer): OutputItem[] {
  const { id, content, reasoning, toolCalls } = answer;
  return [
    ...(reasoning ? [items.reasoning(id, reasoning)] : []),
    ...(content === '' && toolCalls.length > 0 ? [] : [items.message(id, content, endOf(answer))]),
    ...toolCalls.map((call) => items.call(call, call.arguments)),
  ];
}

export function responseObject(request: ModelRequest, answer: ModelAnswer): object {
  const { promptTokens, responseTokens, reasoningTokens = 0 } = answer.usage;
  const end = endOf(answer);
  return {
    ...shell(request, answer.id, end),
    incomplete_details: end === 'incomplete' ? { reason: 'max_output_tokens' } : null,
    output: outputOf(answer),
    usage: {
      input_tokens: promptTokens,
      output_tokens: responseTokens,
      total_tokens: promptTokens + responseTokens,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens_details: { reasoning_tokens: reasoningTokens },
    },
  };
}

/** The fields of a response that has only begun. */
function shell(request: ModelRequest, id: string, status: string) {
  const { model, tools = [], toolChoice = 'auto', maxTokens, repeated = {} } = request;
  return {
    id,
    object: 'response',
    created_at: epochSeconds(),
    status,
    model,
    error: null,
    incomplete_details: null,
    ...{
      instructions: null,
      max_output_tokens: maxTokens ?? null,
      metadata: {},
      output: [],
      parallel_tool_calls: true,
    },
    ...{
      previous_response_id: null,
      store: false,
      temperature: null,
      top_p: null,
      truncation: 'disabled',
      usage: null,
    },
    tool_choice: typeof toolChoice === 'object' ? { type: 'function', ...toolChoice } : toolChoice,
    tools: tools.map((tool) => ({ type: 'function', ...tool, strict: false })),
    ...repeated,
  };
}

/** The items that grow piece by piece, with the names of their events and the beginnings of their ids. */
type Spoken = 'text' | 'reasoning';
const NAME = { text: 'output_text', reasoning: 'reasoning_text' } as const;
const PREFIX = { text: 'msg', reasoning: 'rs' } as const;

export async function* responseEvents(
  request: ModelRequest,
  deltas: AsyncIterable<ModelDelta>,
): AsyncIterable<StreamEvent> {
  let count = 0;
  let index = 0;
  let id = '';
  let open: { readonly type: Spoken; text: string } | undefined;
  const event = (type: string, fields: object): StreamEvent => ({
    event: type,
    data: exactJson({ type, ...fields, sequence_number: count++ }),
  });
  const added = (item: OutputItem) => event('response.output_item.added', { output_index: index, item });
  const done = (item: OutputItem) => event('response.output_item.done', { output_index: index++, item });

  const place = (prefix: string) => ({ item_id: `${prefix}_${id}`, output_index: index, content_index: 0 });
  const part = { text: textPart, reasoning: thoughtPart };

  function* begin(type: Spoken): Iterable<StreamEvent> {
    open = { type, text: '' };
    yield added(type === 'text' ? items.message(id, '', 'in_progress') : { ...items.reasoning(id, ''), content: [] });
    yield event('response.content_part.added', { ...place(PREFIX[type]), part: part[type]('') });
  }
  function* close(end = 'completed'): Iterable<StreamEvent> {
    if (open === undefined) return;
    const { type, text } = open;
    const logprobs = type === 'text' ? { logprobs: [] } : {};
    yield event(`response.${NAME[type]}.done`, { ...place(PREFIX[type]), text, ...logprobs });
    yield event('response.content_part.done', { ...place(PREFIX[type]), part: part[type](text) });
    yield done(type === 'text' ? items.message(id, text, end) : items.reasoning(id, text));
    open = undefined;
  }
  function* grow(type: Spoken, delta: string): Iterable<StreamEvent> {
    if (open?.type !== type) {
      yield* close();
      yield* begin(type);
    }
    if (open !== undefined) open.text += delta;
    const logprobs = type === 'text' ? { logprobs: [] } : {};
    yield event(`response.${NAME[type]}.delta`, { ...place(PREFIX[type]), delta, ...logprobs });
  }
  function* called(call: ToolCall): Iterable<StreamEvent> {
    yield added(items.call(call, '', 'in_progress'));
    const { name, arguments: text } = call;
    const at = { item_id: `fc_${call.id}`, output_index: index };
    yield event('response.function_call_arguments.delta', { ...at, delta: text });
    yield event('response.function_call_arguments.done', { ...at, name, arguments: text });
    yield done(items.call(call, text));
  }

  for await (const delta of wholeDeltas(deltas)) {
    if (delta.type === 'begin') {
      id = delta.id;
      for (const type of ['created', 'in_progress'])
        yield event(`response.${type}`, { response: shell(request, id, 'in_progress') });
    } else if (delta.type !== 'answer') yield* grow(delta.type, delta.text);
    else {
      const { answer } = delta;
      const end = endOf(answer);
      yield* close(end);
      if (answer.content === '' && answer.toolCalls.length === 0) {
        yield* begin('text');
        yield* close(end);
      }
      for (const call of answer.toolCalls) yield* called(call);
      yield event(`response.${end}`, { response: responseObject(request, answer) });
    }
  }
}

/** The fields stand at the top, as OpenAI documents them, and in `error`, where its own clients look for them. */
export function responseErrorEvent(error: DialectError, sent: number): StreamEvent {
  const fields = openAiError(error);
  return { event: 'error', data: JSON.stringify({ ...fields.error, type: 'error', sequence_number: sent, ...fields }) };
}
