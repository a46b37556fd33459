/** Sampling: the request and the result. */

import { BackendError } from '../errors.js';
import type { RandomKey } from '../math.js';
import type { FinishReason, Tokenizer } from '../nouns.js';

/**
 * Logits are multiplied by 1 / temperature in 32-bit floats, which end at 3.4e38. Beyond this range the product would
 * be infinite, or the factor 0.
 */
const COOLEST = 1e-30;
const HOTTEST = 1e30;

/** Whether a temperature takes the most probable token: it is 0, or so small that its inverse has no meaning. */
export const isGreedy = (temperature: number): boolean => temperature < COOLEST;

/** The factor of the logits from which a token is drawn; 0 takes the most probable token. */
export const scaleOfDraws = (temperature: number): number =>
  isGreedy(temperature) ? 0 : 1 / Math.min(temperature, HOTTEST);

/** The factor of the logits whose softmax gives log-probs: 1 for a greedy sample. */
export const scaleOfScores = (temperature: number): number => scaleOfDraws(temperature) || 1;

/** How a response is sampled. */
export interface Sampling {
  /** 0 takes the most probable token; a temperature below 1e-30 counts as 0, one above 1e30 as 1e30. */
  readonly temperature: number;
  /** Keep the smallest set of tokens whose probability reaches this; 1 keeps all. */
  readonly topP: number;
  /** Keep this many of the most probable tokens; 0 keeps all. */
  readonly topK: number;
  /** The longest response, its stop token included. */
  readonly maxTokens: number;
}

/** A prompt of token ids, with the settings and the random stream of one response. */
export interface GenerateRequest extends Sampling {
  readonly prompt: readonly number[]; // [P], at least one token
  readonly stopTokens: readonly number[];
  /** Names the random stream of this response. */
  readonly key: RandomKey;
  /** The published version that samples; by default the last one. */
  readonly version?: number;
  /** The agent that speaks. Only a policy with an adapter for each agent reads it. */
  readonly agent?: string;
}

/** One sampled response: its token ids and their log-probs, in nats. */
export interface Generation {
  readonly tokens: number[]; // [R], the stop token included if one was sampled
  /** log softmax(logits / temperature) over the full vocabulary, before top-p and top-k. */
  readonly logprobs: number[]; // [R]
  readonly finishReason: FinishReason;
  readonly policyVersion: number;
}

/** Receives the tokens of a response while it is sampled: each once, in order, one or several at a time. */
export type OnTokens = (tokens: readonly number[]) => void;

/** A model that can be played. */
export interface PlayableHandle {
  readonly tokenizer: Tokenizer;
  /** Longest prompt + response in tokens. */
  readonly context: number;
  /**
   * Samples a response from published weights.
   * @throws BackendError when nothing was published, the version is not kept, or the prompt does not fit the context.
   *   Rejects with the signal's reason, or with an error that `onTokens` throws.
   */
  generate(request: GenerateRequest, signal?: AbortSignal, onTokens?: OnTokens): Promise<Generation>;
}

/** The most tokens that a response may have. @throws BackendError if the prompt fills the context */
export function responseRoom({ prompt, maxTokens }: GenerateRequest, context: number): number {
  if (prompt.length >= context)
    throw new BackendError(`a prompt of ${prompt.length} tokens leaves no room in a context of ${context}`);
  return Math.min(maxTokens, context - prompt.length);
}
