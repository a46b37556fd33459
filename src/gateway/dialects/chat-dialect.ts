/** Chat completions, as OpenAI defines them and as vLLM extends them by token ids. */

import { exactJson, given } from '@drmas/engine/errors';
import type { Message, Tool, ToolCall, ToolChoice } from '@drmas/engine/nouns';
import { z } from 'zod';
import { epochSeconds, openAiError, wholeDeltas } from './answer-parts.js';
import type { AnswerUsage, Dialect, ModelAnswer, ModelDelta, ModelRequest, StreamEvent } from './dialect.js';
import {
  callArguments,
  checked,
  content,
  ignoredFields,
  invalidField,
  jsonSchema,
  MOST_MESSAGES,
  nameText,
  only,
  optionalContent,
  otherTools,
  STOPS_EXPECTED,
  seedNumber,
  stopTexts,
  tokenLimit,
  toolList,
  toolsOf,
  topKNumber,
} from './request-fields.js';

const toolCall = z
  .object({
    id: nameText,
    type: z.literal('function').nullish(),
    function: z.object({ name: nameText, arguments: callArguments }),
  })
  .transform(({ id, function: called }): ToolCall => ({ id, name: called.name, arguments: called.arguments }));

const optionalText = z.string().nullish().catch(undefined);

const named = <Role extends string>(role: Role) =>
  z.object({ role: z.literal(role), content, name: nameText.nullish() });

const message = z
  .discriminatedUnion('role', [
    named('system'),
    named('developer'),
    named('user'),
    z.object({
      role: z.literal('assistant'),
      content: optionalContent,
      name: nameText.nullish(),
      refusal: z.string().nullish(),
      reasoning_content: optionalText,
      reasoning: optionalText, // of vLLM, OpenRouter and Ollama
      audio: only(() => false, 'these models read only text'),
      tool_calls: z.array(toolCall).nullish(),
      function_call: only(() => false, 'function_call is an older form of tool_calls; send tool_calls'),
    }),
    z.object({ role: z.literal('tool'), content, name: nameText.nullish(), tool_call_id: nameText }),
  ])
  .transform((read): Message => {
    const toolCalls = 'tool_calls' in read && read.tool_calls?.length ? read.tool_calls : undefined;
    const toolCallId = 'tool_call_id' in read ? read.tool_call_id : undefined;
    const role = read.role === 'developer' ? 'system' : read.role;
    const refusal = 'refusal' in read && read.content === '' ? read.refusal : undefined;
    const reasoning = (read.role === 'assistant' && (read.reasoning_content || read.reasoning)) || undefined;
    return { role, content: refusal ?? read.content, ...given({ name: read.name, reasoning, toolCalls, toolCallId }) };
  });

const tool = z
  .object({
    type: z.literal('function', 'expected a function'),
    function: z.object({
      name: nameText,
      description: z.string().nullish(),
      parameters: jsonSchema.nullish(),
      strict: z.boolean().nullish(),
    }),
  })
  .transform(({ function: { name, description, parameters, strict } }): Tool => {
    return { name, parameters: parameters ?? { type: 'object', properties: {} }, ...given({ description, strict }) };
  });

const toolChoice = z.union(
  [
    z.enum(['auto', 'none', 'required']),
    z
      .object({ type: z.literal('function'), function: z.object({ name: nameText }) })
      .transform(({ function: { name } }): ToolChoice => ({ name })),
  ],
  "expected 'auto', 'none', 'required' or { type: 'function', function: { name } }",
);

const responseFormat = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text') }),
  z.object({ type: z.literal('json_object'), schema: jsonSchema.nullish() }), // as llama.cpp and others extend it
  z.object({ type: z.literal('json_schema'), json_schema: z.object({ schema: jsonSchema.nullish() }) }),
]);

/** The most answers to one request, as OpenAI allows. */
const MOST_ANSWERS = 128;

const isEmpty = (value: unknown) => typeof value === 'object' && value !== null && Object.keys(value).length === 0;

const body = z.object({
  model: nameText,
  messages: z.array(message).min(1).max(MOST_MESSAGES),
  tools: toolList('function', tool),
  tool_choice: toolChoice.nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  max_tokens: tokenLimit,
  max_completion_tokens: tokenLimit,
  stream: z.boolean().nullish(),
  stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
  response_format: responseFormat.nullish(),
  logprobs: z.boolean().nullish(),
  return_token_ids: z.boolean().nullish(),
  temperature: z.number().nullish(),
  top_p: z.number().nullish(),
  top_k: topKNumber.nullish(),
  seed: seedNumber.nullish(),
  stop: z.union([z.string().transform((text) => [text]), stopTexts], STOPS_EXPECTED).nullish(),
  n: z.int().min(1).max(MOST_ANSWERS).nullish(),
  logit_bias: only(isEmpty, 'logit_bias would make other log-probs than the policy has'),
  functions: only(isEmpty, 'functions are an older form of tools; send tools'),
  function_call: only((value) => value === 'none' || value === 'auto', 'function_call is an older form of tool_choice'),
  audio: only(() => false, 'these models answer only with text'),
  modalities: only(
    (value) => Array.isArray(value) && value.every((each) => each === 'text'),
    'these models answer only with text',
  ),
});

function read(value: unknown): ModelRequest {
  const request = checked(body, value);
  const { model, messages, tools, tool_choice, stream, stream_options, response_format: format } = request;
  const { temperature, top_p: topP, top_k: topK, seed, stop, n } = request;
  if (n && n > 1 && stream) throw invalidField('n', 'a stream has one answer; send n: 1, or stream: false');
  return {
    model,
    messages,
    stream: stream === true,
    ...toolsOf(tools, tool_choice ?? undefined),
    ...given({ maxTokens: request.max_completion_tokens ?? request.max_tokens, answers: n }),
    ...(format?.type === 'json_schema' ? { responseSchema: format.json_schema.schema ?? { type: 'object' } } : {}),
    ...(format?.type === 'json_object' ? { responseSchema: format.schema ?? { type: 'object' } } : {}),
    streamUsage: stream_options?.include_usage === true,
    wantsTokenIds: request.logprobs === true || request.return_token_ids === true,
    sampling: given({ temperature, topP, topK, seed, stop }),
    ignored: [
      ...ignoredFields(value as object, body.shape),
      ...otherTools(value, 'function'),
      ...(request.parallel_tool_calls === false ? ['parallel_tool_calls'] : []),
    ],
  };
}

function write(_request: ModelRequest, answer: ModelAnswer, further: readonly ModelAnswer[] = []): object {
  const answers = [answer, ...further];
  const sumOf = (of: (usage: AnswerUsage) => number) => answers.reduce((sum, { usage }) => sum + of(usage), 0);
  const responseTokens = sumOf((usage) => usage.responseTokens);
  const reasoningTokens = sumOf((usage) => usage.reasoningTokens ?? 0);
  return {
    ...headOf('chat.completion', answer.id, answer.model),
    choices: answers.map(choiceOf),
    usage: usageOf({ promptTokens: answer.usage.promptTokens, responseTokens, reasoningTokens }),
    ...promptIds(answer.tokens),
  };
}

function choiceOf(answer: ModelAnswer, index: number): object {
  const { content, reasoning, toolCalls, finishReason, tokens } = answer;
  const message = {
    role: 'assistant',
    content: content === '' && toolCalls.length > 0 ? null : content,
    refusal: null,
    ...given({ reasoning_content: reasoning }),
    ...(toolCalls.length > 0 ? { tool_calls: toolCalls.map(written) } : {}),
  };
  return { index, message, finish_reason: finishReason, ...stopOf(answer), ...choiceTokens(tokens) };
}

/** Chunks of reasoning and text as they arrive, then one with calls, one with the finish reason, one with counts. */
async function* stream(request: ModelRequest, deltas: AsyncIterable<ModelDelta>): AsyncIterable<StreamEvent> {
  let head: object = {};
  const chunk = (delta: object, finish_reason: ModelAnswer['finishReason'] | null = null, more: object = {}) =>
    event({ ...head, choices: [{ index: 0, delta, finish_reason, logprobs: null, ...more }] });
  for await (const delta of wholeDeltas(deltas)) {
    if (delta.type === 'begin') {
      head = headOf('chat.completion.chunk', delta.id, request.model);
      yield chunk({ role: 'assistant', content: '' });
    } else if (delta.type === 'text') yield chunk({ content: delta.text });
    else if (delta.type === 'reasoning') yield chunk({ reasoning_content: delta.text });
    else {
      const { toolCalls, finishReason, tokens } = delta.answer;
      if (toolCalls.length > 0)
        yield chunk({ tool_calls: toolCalls.map((call, index) => ({ index, ...written(call) })) });
      head = { ...head, ...promptIds(tokens) };
      yield chunk({}, finishReason, { ...stopOf(delta.answer), ...choiceTokens(tokens) });
      if (request.streamUsage) yield event({ ...head, choices: [], usage: usageOf(delta.answer.usage) });
    }
  }
  yield { data: '[DONE]' };
}

const event = (data: object): StreamEvent => ({ data: exactJson(data) });

const headOf = (object: string, id: string, model: string) => ({ id, object, created: epochSeconds(), model });

const written = ({ id, name, arguments: text }: ToolCall) => ({
  id,
  type: 'function',
  function: { name, arguments: text },
});

/** Counts with all their details: some clients fail if these are absent. */
const usageOf = ({ promptTokens, responseTokens, reasoningTokens = 0 }: AnswerUsage) => ({
  prompt_tokens: promptTokens,
  completion_tokens: responseTokens,
  total_tokens: promptTokens + responseTokens,
  prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
  completion_tokens_details: {
    reasoning_tokens: reasoningTokens,
    audio_tokens: 0,
    accepted_prediction_tokens: 0,
    rejected_prediction_tokens: 0,
  },
});

/** The stop text that ended an answer, under the name of vLLM. */
const stopOf = ({ stopText }: ModelAnswer) => given({ stop_reason: stopText });

const promptIds = (tokens: ModelAnswer['tokens']) => (tokens === undefined ? {} : { prompt_token_ids: tokens.prompt });

/** Ids and log-probs of a choice under the names of vLLM; a token's text is its id, which no decoding can blur. */
function choiceTokens(tokens: ModelAnswer['tokens']): object {
  if (tokens === undefined) return { logprobs: null };
  const { response, logprobs } = tokens;
  const content = logprobs.map((logprob, i) => ({
    token: `token_id:${response[i]}`,
    logprob,
    bytes: null,
    top_logprobs: [],
  }));
  return { token_ids: response, logprobs: { content, refusal: null } };
}

export const chatDialect: Dialect = {
  read,
  write,
  stream,
  error: openAiError,
  streamError: (e) => event(openAiError(e)),
};
