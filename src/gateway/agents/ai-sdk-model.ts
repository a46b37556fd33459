/** An agent as a model of AI SDK's interface. */
import { DialectError } from '@drmas/engine/errors';
import type {
  ContentPart,
  LanguageModel,
  ModelCall,
  ModelResult,
  ModelStreamPart,
  ModelWarning,
  ProviderData,
} from '../../teams/index.js';
import type { ModelAnswer, ModelRequest } from '../dialects/dialect.js';
import { type ConvertedCall, readCall, type SamplingSource } from './ai-sdk-prompt.js';
import type { AgentAdapter, EpisodeCalls } from './attribution.js';

/** Answers a request; fires of the signal end it. */
export type Complete = (request: ModelRequest, signal: AbortSignal | undefined) => Promise<ModelAnswer>;

/**
 * A model that `complete` answers for. Each part of an answer carries its turn's id. Frameworks return the id with the
 * part, so a later call recognises the turn even if the framework changed its text.
 */
export function agentModel(name: string, complete: Complete, sampler: SamplingSource = 'recipe'): LanguageModel {
  return modelOf(name, complete, (call) => readCall(name, call, sampler));
}

/** The model of an agent in an episode. */
export function playedModel(name: string, calls: EpisodeCalls): LanguageModel {
  const complete: Complete = (request, signal) => calls.complete(name, request, signal);
  return modelOf(name, complete, (call) => {
    try {
      return readCall(name, call, 'recipe');
    } catch (error) {
      calls.noteRefusal(error);
      throw error;
    }
  });
}

/** Agents refuse images and files. AI SDK would download them first, and show the error of the download alone. */
export const ALL_URLS: LanguageModel['supportedUrls'] = { '*/*': [/./] };

function modelOf(name: string, complete: Complete, read: (call: ModelCall) => ConvertedCall): LanguageModel {
  const generate = async (call: ModelCall): Promise<ModelResult> => {
    const { request, warnings } = read(call);
    return resultOf(await complete(request, call.abortSignal).catch(rejectAsModel), warnings);
  };
  return {
    specificationVersion: 'v3',
    provider: 'drmas',
    modelId: name,
    supportedUrls: ALL_URLS,
    doGenerate: generate,
    doStream: async (call) => ({ stream: streamOf(await generate(call)) }),
  };
}

/**
 * Gives a refusal the fields of AI SDK's `APICallError`. `APICallError.isInstance` then recognises it (by two symbols,
 * because several copies of the package may be installed), and code that handles a provider's refusal handles it too.
 */
function rejectAsModel(error: unknown): never {
  if (!(error instanceof DialectError)) throw error;
  const { message, code, status } = error;
  throw Object.assign(error, {
    [Symbol.for('vercel.ai.error')]: true,
    [Symbol.for('vercel.ai.error.AI_APICallError')]: true,
    url: 'drmas',
    requestBodyValues: {},
    statusCode: status,
    isRetryable: false,
    data: { error: { message, type: 'invalid_request_error', code } },
  });
}

function resultOf(answer: ModelAnswer, warnings: ModelWarning[]): ModelResult {
  const { id, model, finishReason, usage } = answer;
  const { responseTokens: total, reasoningTokens: reasoning } = usage;
  return {
    content: contentOf(answer),
    finishReason: { unified: finishReason === 'tool_calls' ? 'tool-calls' : finishReason, raw: finishReason },
    usage: {
      inputTokens: {
        total: usage.promptTokens,
        noCache: usage.promptTokens,
        cacheRead: undefined,
        cacheWrite: undefined,
      },
      outputTokens: { total, text: reasoning === undefined ? undefined : total - reasoning, reasoning },
    },
    warnings,
    response: { id, modelId: model },
  };
}

/** An answer's parts. An answer without any is an empty text, so that the turn is in the conversation. */
function contentOf({ id, content, reasoning, toolCalls }: ModelAnswer): ContentPart[] {
  const providerMetadata: ProviderData = { drmas: { turn: id } };
  return [
    ...(reasoning === undefined ? [] : [{ type: 'reasoning' as const, text: reasoning, providerMetadata }]),
    ...(content === '' && toolCalls.length > 0 ? [] : [{ type: 'text' as const, text: content, providerMetadata }]),
    ...toolCalls.map(({ id: toolCallId, name: toolName, arguments: input }) => {
      return { type: 'tool-call' as const, toolCallId, toolName, input, providerMetadata };
    }),
  ];
}

/** A whole answer as a stream. drmas commits a turn before a client reads it, so the whole answer comes at once. */
function streamOf({ content, finishReason, usage, warnings, response }: ModelResult): ReadableStream<ModelStreamPart> {
  const parts: ModelStreamPart[] = [
    { type: 'stream-start', warnings },
    { type: 'response-metadata', ...response },
    ...content.flatMap(piecesOf),
    { type: 'finish', finishReason, usage },
  ];
  return new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
      controller.close();
    },
  });
}

function piecesOf(part: ContentPart, index: number): ModelStreamPart[] {
  if (part.type === 'tool-call') {
    const { toolCallId: id, toolName, input } = part;
    return [
      { type: 'tool-input-start', id, toolName },
      { type: 'tool-input-delta', id, delta: input },
      { type: 'tool-input-end', id },
      part,
    ];
  }
  const { type, text, providerMetadata } = part;
  const id = String(index);
  return [
    { type: `${type}-start`, id, providerMetadata },
    { type: `${type}-delta`, id, delta: text },
    { type: `${type}-end`, id, providerMetadata },
  ];
}

export const aiSdkModels: AgentAdapter = {
  toAgent: {
    model: (calls, name) => playedModel(name, calls),
  },
};
