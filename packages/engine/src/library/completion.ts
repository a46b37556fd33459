/** Completions: the request for them, and the result. */

import type { DecoderConfig } from '../contract/architecture.js';
import type { Sampling } from '../contract/sampling.js';
import { checkedSampling, type TokenIds } from '../embedded/generate-options.js';
import { requireRoom } from '../embedded/token-checks.js';
import { ArgumentError, type OptionNames, requireKnown } from '../errors.js';
import type { FinishReason, Message, Tokenizer } from '../nouns.js';

/** A prompt: text without a template, messages for the model's chat template, or token ids. */
export type Prompt = string | readonly Message[] | TokenIds;

/** The settings of `TrainableModel.generate`, without the prompts. */
export interface CompletionOptions {
  /** The longest response in tokens, its stop token included. */
  readonly maxTokens: number;
  /** Default 1, the model's own distribution. 0 takes the most probable token each time. */
  readonly temperature?: number | undefined;
  /** Samples from the smallest set of tokens whose probability reaches this. Default 1: from all tokens. */
  readonly topP?: number | undefined;
  /** Samples from this many of the most probable tokens. Default 0: from all tokens. */
  readonly topK?: number | undefined;
  /**
   * Equal seeds give equal completions of a prompt at the same place in `prompts`, whatever the others are, at any
   * number of threads. Default: a number that follows from the model's seed and the number of earlier calls of
   * `generate`.
   */
  readonly seed?: number | undefined;
  /**
   * The tokens that end a response: ids, or texts that are one token. Default: the tokenizer's stop tokens. With an
   * empty list every response has `maxTokens` tokens.
   */
  readonly stop?: readonly (number | string)[] | undefined;
  /** Ends the generation; the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** A request for one completion. */
export interface CompletionRequest extends CompletionOptions {
  readonly prompt: Prompt;
}

/** A request for a group of completions of each prompt. All of them are decoded in one batch. */
export interface GroupRequest extends CompletionOptions {
  readonly prompts: readonly Prompt[];
  /** The number of completions of each prompt. Default 1. */
  readonly n?: number | undefined;
}

/** A sampled response, with everything that training needs of it. */
export interface Completion {
  readonly prompt: readonly number[]; // [P]
  /** The sampled ids, with the stop token if one ended the response. */
  readonly tokens: readonly number[]; // [R]
  /**
   * log softmax(logits / temperature) of each token, over the full vocabulary; log softmax(logits) at temperature 0.
   */
  readonly logprobs: readonly number[]; // [R]
  /** The response as text, without the stop token. */
  readonly text: string;
  /** `stop`: a stop token ended the response. `length`: it reached `maxTokens` or the end of the context. */
  readonly finishReason: FinishReason;
  readonly temperature: number;
  /** The number of the weights that sampled: 0 at first, then 1 more each time that `generate` met new weights. */
  readonly version: number;
}

interface PromptReader {
  readonly config: DecoderConfig;
  readonly tokenizer: Tokenizer;
}

/** The ids of a prompt. @throws ArgumentError if it is no prompt; TokenizerError for text without tokens */
export function promptIds(tokenizer: Tokenizer, prompt: Prompt): number[] {
  if (typeof prompt === 'string') return tokenizer.encode(prompt);
  if (!Array.isArray(prompt) && !(prompt instanceof Int32Array))
    throw new ArgumentError(`prompt: expected text, messages or token ids, found ${typeof prompt}`);
  return isConversation(prompt) ? tokenizer.chat(prompt) : Array.from(prompt);
}

const isConversation = (prompt: Exclude<Prompt, string>): prompt is readonly Message[] => typeof prompt[0] === 'object';

export interface CheckedRequest {
  readonly prompts: readonly (readonly number[])[]; // [prompts][P]
  readonly n: number;
  readonly sampling: Sampling;
  readonly stopTokens: readonly number[];
}

const OPTIONS: OptionNames<CompletionRequest & GroupRequest> = {
  ...{ prompt: true, prompts: true, n: true, maxTokens: true, temperature: true, topP: true, topK: true },
  ...{ seed: true, stop: true, signal: true },
};

/**
 * @param seed The seed that the request asks for, or its default
 * @throws ArgumentError naming the option that is wrong; TokenizerError as `promptIds` does
 */
export function checkedRequest(
  { config, tokenizer }: PromptReader,
  request: CompletionRequest | GroupRequest,
  seed: number,
): CheckedRequest {
  requireKnown(request, OPTIONS);
  const { maxTokens, temperature = 1, topP = 1, topK = 0 } = request;
  const sampling = checkedSampling({ maxTokens, temperature, topP, topK }, seed);
  const one = 'prompt' in request;
  if (one === 'prompts' in request) throw new ArgumentError('expected either `prompt` or `prompts`');
  if (one && 'n' in request) throw new ArgumentError('`n` goes with `prompts`: expected { prompts: [prompt], n }');
  const n = one ? 1 : (request.n ?? 1);
  if (!(Number.isSafeInteger(n) && n >= 1))
    throw new ArgumentError(`n: expected a whole number of at least 1, found ${n}`);
  const prompts = (one ? [request.prompt] : request.prompts).map((prompt, i) => {
    const ids = promptIds(tokenizer, prompt);
    requireRoom(one ? 'prompt' : `prompts[${i}]`, ids, config);
    return ids;
  });
  return { prompts, n, sampling, stopTokens: stopIds(tokenizer, request.stop) };
}

function stopIds(tokenizer: Tokenizer, stop: CompletionOptions['stop']): readonly number[] {
  return stop === undefined ? tokenizer.stopTokens : stop.map((each, i) => stopId(tokenizer, each, `stop[${i}]`));
}

function stopId({ vocabSize, encode }: Tokenizer, stop: number | string, what: string): number {
  const ids = typeof stop === 'number' ? [stop] : encode(stop);
  const [id] = ids;
  if (ids.length !== 1 || id === undefined)
    throw new ArgumentError(`${what}: expected a text of one token, ${JSON.stringify(stop)} has ${ids.length}`);
  if (Number.isInteger(id) && id >= 0 && id < vocabSize) return id;
  throw new ArgumentError(`${what}: token ${id} is outside the vocabulary of ${vocabSize}`);
}
