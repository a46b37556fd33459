/** A model of AI SDK that answers for a frozen agent: the way out, where `agentModel` is the way in. */

import type { TextMessage, TextRequest } from '@drmas/engine/contract';
import type { CompleteText, TextReply } from '@drmas/engine/endpoints';
import { ArgumentError, EndpointError, given, isObject } from '@drmas/engine/errors';
import { argumentsText } from '@drmas/engine/nouns';
import type { AnyLanguageModel } from './trainable.js';

/** The parts of an answer of interface version 2, 3 or 4 that a turn keeps. */
interface Answer {
  readonly content?: unknown;
  readonly finishReason?: unknown;
  readonly usage?: unknown;
}

/** @throws ArgumentError for what has no `doGenerate`, such as a model given as a string */
export function completeWith(model: AnyLanguageModel): CompleteText {
  const { doGenerate } = model as { readonly doGenerate?: unknown };
  if (typeof doGenerate !== 'function')
    throw new ArgumentError('frozen(...): expected a model with doGenerate, as providers of AI SDK return it');
  return async (request, signal) => {
    const answer: unknown = await Reflect.apply(doGenerate, model, [callOf(request, signal)]);
    return replyOf(answer as Answer, model);
  };
}

function callOf(request: TextRequest, abortSignal: AbortSignal): object {
  const { messages, maxTokens, temperature, topP, topK, seed, tools, toolChoice } = request;
  return {
    prompt: promptMessages(messages),
    maxOutputTokens: maxTokens,
    temperature,
    topP,
    ...(topK > 0 ? { topK } : {}),
    seed,
    abortSignal,
    ...(tools === undefined
      ? {}
      : {
          tools: tools.map(({ name, description, parameters, strict }) => ({
            type: 'function',
            name,
            ...given({ description, strict }),
            inputSchema: parameters,
          })),
          toolChoice:
            typeof toolChoice === 'object'
              ? { type: 'tool', toolName: toolChoice.name }
              : { type: toolChoice ?? 'auto' },
        }),
  };
}

/** The messages, with the model's own answers as it gave them: some providers refuse them without their metadata. */
function promptMessages(messages: readonly TextMessage[]): object[] {
  const ids = new Map<string, string>();
  return messages.map((message) => {
    const { toolCalls = [], toolCallId = '', providerData } = message;
    if (message.role === 'tool') return promptMessage({ ...message, toolCallId: ids.get(toolCallId) ?? toolCallId });
    const own = Array.isArray(providerData?.content) ? providerData.content.filter(isObject) : [];
    if (toolCalls.length === 0 || own.length === 0) return promptMessage(message);
    const calls = own.filter(({ type }) => type === 'tool-call');
    for (const [i, { id }] of toolCalls.entries()) ids.set(id, String(calls[i]?.toolCallId ?? id));
    return { role: 'assistant', content: own.map(ownPart) };
  });
}

const OWN = ['reasoning', 'text', 'tool-call'];
const isOwn = ({ type }: Record<string, unknown>) => OWN.includes(String(type));

const ownPart = ({ providerMetadata: providerOptions, ...part }: Record<string, unknown>) => ({
  ...part,
  ...(part.type === 'tool-call' ? { input: inputOf(part.input) } : {}),
  ...given({ providerOptions }),
});

/** A message. Some providers refuse calls of a thinking model without its reasoning. */
function promptMessage({ role, content, reasoning, toolCalls = [], toolCallId = '', name = '' }: TextMessage): object {
  if (role === 'system') return { role, content };
  const text = content === '' && role === 'assistant' ? [] : [{ type: 'text', text: content }];
  if (role === 'user') return { role, content: text };
  if (role === 'tool') {
    const output = { type: 'text', value: content };
    return { role, content: [{ type: 'tool-result', toolCallId, toolName: name, output }] };
  }
  const calls = toolCalls.map(({ id, name: toolName, arguments: written }) => ({
    type: 'tool-call',
    toolCallId: id,
    toolName,
    input: inputOf(written),
  }));
  const thought = reasoning === undefined || calls.length === 0 ? [] : [{ type: 'reasoning', text: reasoning }];
  return { role, content: [...thought, ...text, ...calls] };
}

/** The interface has values here: integers above 2^53 are rounded. */
const inputOf = (input: unknown): unknown => (typeof input === 'string' ? JSON.parse(argumentsText(input)) : input);

/**
 * @throws EndpointError for an answer of another interface: every later answer has that form too; Error for an answer
 *   that an error or a content filter ended
 */
function replyOf({ content, finishReason, usage }: Answer, { provider, modelId }: AnyLanguageModel): TextReply {
  if (!Array.isArray(content))
    throw new EndpointError(`${provider}/${modelId} answered without a list of parts; expected AI SDK 5, 6 or 7`);
  const parts = content.filter(isObject);
  const joined = (type: string) =>
    parts
      .filter((part) => part.type === type)
      .map(({ text }) => String(text))
      .join('');
  const reasoning = joined('reasoning');
  const toolCalls = parts
    .filter(({ type }) => type === 'tool-call')
    .map(({ toolCallId, toolName, input }) => ({
      id: String(toolCallId),
      name: String(toolName),
      arguments: typeof input === 'string' ? input : JSON.stringify(input ?? {}),
    }));
  const finish = isObject(finishReason) ? finishReason.unified : finishReason;
  if (finish === 'error') throw new Error(`${provider}/${modelId} ended its answer by an error`);
  if (finish === 'content-filter') throw new Error(`a content filter ended the answer of ${provider}/${modelId}`);
  const { inputTokens, outputTokens } = isObject(usage) ? usage : {};
  const [promptTokens, responseTokens] = [countOf(inputTokens), countOf(outputTokens)];
  return {
    text: joined('text'),
    ...(reasoning === '' ? {} : { reasoning }),
    ...(toolCalls.length === 0 ? {} : { toolCalls, providerData: { content: parts.filter(isOwn) } }),
    finishReason: finish === 'length' ? 'length' : 'stop',
    ...given({ promptTokens, responseTokens }),
  };
}

/** A count of tokens: a number in version 2, `{ total }` later. */
function countOf(tokens: unknown): number | undefined {
  const total = isObject(tokens) ? tokens.total : tokens;
  return typeof total === 'number' && Number.isInteger(total) && total >= 0 ? total : undefined;
}
