/** The client of a frozen agent's model on a server with OpenAI's chat completions. It uses OpenAI's own library. */

import { APIError, OpenAI } from 'openai';
import { z } from 'zod';
import { temperatureOf } from '../backends/agent-reply.js';
import type { TextBackend, TextMessage, TextRequest, Utterance } from '../contract/text-backend.js';
import {
  AnswerError,
  exactJson,
  given,
  inPlainWords,
  isObject,
  issuesText,
  jsonObject,
  jsonValue,
  ownValue,
  reasonOf,
  shown,
} from '../errors.js';
import { excerpt, Secret, waitMs } from '../host.js';
import { argumentsText } from '../nouns.js';
import { retryAfterMs, webRequest } from '../platform.js';
import type { EndpointSpec } from './endpoint-spec.js';
import { requestLine } from './request-line.js';

/**
 * Statuses that a retry cannot change: no key, no permission, an unknown model, or a server that has moved or is not
 * trusted.
 */
const REFUSALS: readonly (number | undefined)[] = [308, 401, 403, 404];

/** Statuses of a request with a wrong field. */
const WRONG: readonly (number | undefined)[] = [400, 422];

/** The longest reply. Far longer than the reply of a model in one turn. */
const LONGEST_ANSWER_BYTES = 16e6;

/** Some servers write the arguments of a call as an object. */
const callArguments = z
  .union([z.string(), z.record(z.string(), z.unknown()).transform(exactJson)])
  .nullish()
  .transform(argumentsText);
const toolCall = z.looseObject({
  id: z.union([z.string(), z.number().transform(String)]).nullish(),
  function: z.looseObject({ name: z.string(), arguments: callArguments }),
});
const optionalText = z.string().nullish().catch(undefined);
const textPart = z.object({ text: z.string().catch('') }).transform(({ text }) => text);
/** Parts of a content, as Mistral's models return them: texts, thinking, and references to the results of tools. */
const part = z.object({
  type: z.string(),
  text: z.string().nullish(),
  thinking: z
    .union([z.string(), z.array(textPart).transform((texts) => texts.join(''))])
    .optional()
    .catch(undefined),
});
const message = z.looseObject({
  content: z.union([z.string(), z.array(part)], 'expected a text, or parts of text and thinking').nullish(),
  refusal: optionalText,
  reasoning_content: optionalText,
  reasoning: optionalText, // of vLLM, OpenRouter and Ollama
  tool_calls: z.array(toolCall).nullish(),
});
/** The server's name for reasoning. Undefined if it is a part of the content, and is not sent back. */
type Thought = 'reasoning_content' | 'reasoning' | undefined;
/** A number that some servers leave out, or write as null. */
const count = z.int().min(0).optional().catch(undefined);
const completion = z.object({
  choices: z.array(z.object({ message, finish_reason: optionalText })).min(1),
  usage: z.object({ prompt_tokens: count, completion_tokens: count }).nullish().catch(undefined),
});

/** Makes no request yet. `environment` may hold OPENAI_API_KEY. Key and prompts are sent only to the URL's origin. */
export function openEndpoint(spec: EndpointSpec, environment: NodeJS.ProcessEnv = process.env): TextBackend {
  const { url, model, timeoutMs, retries, concurrency, body } = spec;
  const apiKey = spec.apiKey ?? environment.OPENAI_API_KEY ?? '';
  const secret = new Secret(apiKey);
  const client = new OpenAI({
    baseURL: url,
    fetch: guarded(secret),
    apiKey: apiKey === '' ? 'none' : apiKey, // the client requires a key
    defaultHeaders: apiKey === '' ? { Authorization: null } : {},
    timeout: waitMs(timeoutMs),
    maxRetries: retries,
  });
  const inLine = requestLine({
    concurrency,
    place: url,
    reason: (error) => excerpt(secret.mask(reasonOf(error)), 1000),
    isFinal: (error) => error instanceof APIError && REFUSALS.includes(error.status),
  });

  let thought: Thought = 'reasoning_content';
  /** Whether the server has taken a strict tool, or refuses them. Undefined until then. */
  let takesStrict: boolean | undefined;
  const ask = async (request: TextRequest, signal: AbortSignal): Promise<Utterance> => {
    if (takesStrict === false || !request.tools?.some(({ strict }) => strict)) return askOnce(lax(request), signal);
    try {
      const answer = await askOnce(request, signal);
      takesStrict = true;
      return answer;
    } catch (error) {
      // Many servers refuse fields that they do not know, each in its own words.
      if (!(error instanceof APIError && WRONG.includes(error.status)) || error.code === filtered.code) throw error;
      const answer = await askOnce(lax(request), signal).catch(() => Promise.reject(error));
      takesStrict ??= false; // a server that has taken it refused the request for another reason
      return answer;
    }
  };
  const askOnce = async (request: TextRequest, signal: AbortSignal): Promise<Utterance> => {
    const { messages, topP, maxTokens, seed } = request;
    const fields = {
      temperature: temperatureOf(request),
      top_p: topP,
      max_tokens: maxTokens,
      seed,
      ...toolFields(request),
      ...body,
    };
    const sent = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
    const conversation = wireMessages(messages, thought);
    const text: string = await client.post('/chat/completions', {
      body: exactJson({ ...sent, model, messages: conversation }), // the client would round integers
      headers: { 'content-type': 'application/json' },
      signal: AbortSignal.any([signal]), // a new signal, since the client does not remove its listener
    });
    const answer = jsonValue(text);
    const parsed = completion.safeParse(answer, { error: inPlainWords });
    if (!parsed.success) {
      const isOther = answer === undefined; // such as the page of a proxy that asks for a login
      const fault = isOther ? `expected JSON, got ${shown(secret.mask(text))}` : issuesText(parsed.error.issues);
      throw new Error(`the answer is not a chat completion: ${fault}`);
    }
    const said = parsed.data.choices[0]?.message;
    if (said?.reasoning && !said.reasoning_content) thought = 'reasoning';
    else if (Array.isArray(said?.content)) thought = undefined;
    return utterance(parsed.data);
  };

  return { complete: (request, signal) => inLine(signal, () => ask(request, signal)) };
}

/**
 * The `fetch` of the client, which gets each answer as a text. It returns a refused reply with a status that is not
 * retried, since the client retries after any error.
 */
function guarded(secret: Secret): typeof fetch {
  return async (input, init = {}) => {
    const { method = 'GET', headers: sent = {}, body = null, signal } = init;
    const request = { method, headers: sent, body, signal: signal ?? new AbortController().signal };
    try {
      const answer = await webRequest(String(input), { ...request, mostBytes: LONGEST_ANSWER_BYTES, secret });
      const { status } = answer;
      const headers = boundedRetryAfter(answer.headers);
      headers.set('content-type', 'text/plain'); // servers name other types for their JSON, or none
      // The client shows only errors in a field `error`: Mistral, Gemini and FastAPI have other forms.
      const isOdd =
        status >= 400 && status <= 599 && jsonValue(answer.text()) !== undefined && !jsonObject(answer.text())?.error;
      if (isOdd) return Response.json({ error: { message: answer.text() } }, { status, headers });
      const failure = status === 200 ? failureIn(answer.text()) : undefined;
      if (failure !== undefined) return Response.json({ error: failure.error }, { status: failure.status, headers });
      // `Response` accepts only these statuses, and some of them only without a body.
      const usable = status >= 200 && status <= 599 && ![204, 205, 304].includes(status);
      return new Response(usable ? answer.text() : `status ${status}`, { status: usable ? status : 502, headers });
    } catch (error) {
      if (!(error instanceof AnswerError)) throw error;
      const { reason, message } = error;
      const refusal = { status: reason === 'too-long' ? 413 : 308, headers: { 'x-should-retry': 'false' } };
      return Response.json({ error: { message } }, refusal);
    }
  };
}

/** Reasons for the end of an answer that are not the model's own. The answer counts as an error of this status. */
const BROKEN_ENDS: Readonly<Record<string, { readonly status: number; readonly why: string; readonly code?: string }>> =
  {
    error: { status: 502, why: 'the model ended its answer by an error' },
    abort: { status: 502, why: 'the server aborted the answer' }, // vLLM and SGLang
    insufficient_system_resource: { status: 503, why: 'the server lacked resources to end the answer' }, // DeepSeek
  };
/** Ends by a filter: OpenAI's `content_filter`, and Gemini's reasons, which its interface for OpenAI keeps. */
const FILTERED = /content_filter|safety|recitation|blocklist|prohibited|spii/i;
const filtered = { status: 422, why: 'a content filter ended the answer', code: 'content_filter' };

/** The error of a reply with status 200: servers send it if their upstream failed when the status was sent already. */
function failureIn(text: string): { readonly status: number; readonly error: object } | undefined {
  const body = jsonObject(text);
  const first: unknown = Array.isArray(body?.choices) ? body.choices[0] : undefined;
  const choice = isObject(first) ? first : {};
  const end = String(choice.finish_reason);
  const broken = FILTERED.test(end) ? filtered : ownValue(BROKEN_ENDS, end);
  const cause = body?.error || choice.error || broken?.why;
  if (!cause) return undefined;
  const error = isObject(cause) ? cause : { message: exactJson(cause), ...given({ code: broken?.code }) };
  const code = Number(error.code);
  return { status: Number.isInteger(code) && code >= 400 && code <= 599 ? code : (broken?.status ?? 502), error };
}

/** The types of texts among the parts of a content. The text of another part may be a thought. */
const TEXT = /^(?:output_)?text$/;

/** Ends at a limit: `length`, Mistral's `model_length` and others' `max_tokens`. */
const CUT = /length|^max/i;

function utterance({ choices: [choice], usage }: z.output<typeof completion>): Utterance {
  const { content, refusal, reasoning_content, reasoning: named, tool_calls: calls } = choice?.message ?? {};
  const { reasoning_details, extra_content } = choice?.message ?? {};
  const parts = Array.isArray(content) ? content : [];
  const joined = (texts: readonly (string | null | undefined)[]) => texts.join('');
  const texts = parts.filter(({ type }) => TEXT.test(type));
  const text = typeof content === 'string' ? content : joined(texts.map((each) => each.text));
  const reasoning = reasoning_content || named || joined(parts.map((each) => each.thinking));
  const toolCalls = (calls ?? []).map(({ id, function: { name, arguments: text } }) => {
    return { id: id ?? '', name, arguments: text };
  });
  const providerData = given({ tool_calls: calls, reasoning_details, extra_content });
  const { prompt_tokens: promptTokens, completion_tokens: responseTokens } = usage ?? {};
  return {
    text: text || refusal || '', // empty if there are only tool calls
    ...(reasoning ? { reasoning } : {}),
    ...(toolCalls.length === 0 ? {} : { toolCalls, providerData }),
    finishReason: CUT.test(choice?.finish_reason ?? '') ? 'length' : 'stop',
    ...given({ promptTokens, responseTokens }),
  };
}

/** The headers with a bounded wait before a retry, in milliseconds; without it if the server asks for none. */
function boundedRetryAfter(headers: Headers): Headers {
  const bounded = new Headers(headers);
  const wait = retryAfterMs(headers);
  bounded.delete('retry-after');
  bounded.delete('retry-after-ms');
  if (wait !== undefined) bounded.set('retry-after-ms', `${wait}`);
  return bounded;
}

// Messages and tools in the form of OpenAI's chat completions.

type WireMessage = OpenAI.ChatCompletionMessageParam;

/**
 * Messages on the wire, with the server's own calls as it wrote them: some servers refuse other ids than theirs, or a
 * call without the signature of its thoughts. Some refuse calls of a thinking model without its reasoning, and some any
 * reasoning under a name that is not theirs. Mistral, Groq and others refuse a message with the name of who speaks.
 */
function wireMessages(messages: readonly TextMessage[], thought: Thought): WireMessage[] {
  const ids = new Map<string, string>();
  return messages.map(({ role, content, reasoning, toolCalls = [], toolCallId = '', providerData }) => {
    if (role === 'tool') return { role, content, tool_call_id: ids.get(toolCallId) ?? toolCallId };
    if (role !== 'assistant' || toolCalls.length === 0) return { role, content };
    const own = isCallList(providerData?.tool_calls) ? providerData.tool_calls : [];
    const isNamed = new Set(own.flatMap(({ id }) => id || [])).size === toolCalls.length;
    const calls = toolCalls.map(({ id: known, name, arguments: text }, i) => {
      const id = (isNamed && own[i]?.id) || known;
      ids.set(known, id);
      return { ...own[i], id, type: 'function' as const, function: { ...own[i]?.function, name, arguments: text } };
    });
    const sent = { role, content: content === '' ? null : content, ...providerData, tool_calls: calls };
    return reasoning === undefined || thought === undefined ? sent : { ...sent, [thought]: reasoning };
  });
}

type WireCall = z.output<typeof toolCall>;
const isCallList = (value: unknown): value is readonly WireCall[] => z.array(toolCall).safeParse(value).success;

/** The request with no tool that is strict. */
const lax = (request: TextRequest): TextRequest =>
  request.tools === undefined
    ? request
    : { ...request, tools: request.tools.map((tool) => ({ ...tool, strict: false })) };

function toolFields({ tools = [], toolChoice }: Pick<TextRequest, 'tools' | 'toolChoice'>) {
  if (tools.length === 0) return {};
  const choice = typeof toolChoice === 'object' ? { type: 'function', function: toolChoice } : toolChoice;
  return {
    // Some servers write `strict` into the prompt, so it is sent only if it asks for something.
    tools: tools.map(({ strict, ...tool }) => ({ type: 'function', function: strict ? { ...tool, strict } : tool })),
    ...given({ tool_choice: choice }),
  };
}
