/**
 * A model behind text: text in, text out. It gives no token ids and no log-probs of ours, so nothing can be learnt from
 * it.
 */

import type { FinishReason, Message, Tool, ToolCall, ToolChoice } from '../nouns.js';
import type { Sampling } from './sampling.js';

/** A message of a conversation. An answer of the same server has the data that came with it. */
export type TextMessage = Message & Pick<Utterance, 'providerData'>;

/** A conversation that a server of text shall continue. */
export interface TextRequest extends Sampling {
  readonly messages: readonly TextMessage[];
  /** The seed for servers that can repeat themselves: a function of the episode and the call, in [0, 2^31). */
  readonly seed: number;
  /** The tools that the model may call; absent if there are none. */
  readonly tools?: readonly Tool[];
  readonly toolChoice?: ToolChoice;
}

/** The answer of a server of text. */
export interface Utterance {
  readonly text: string;
  /** The model's reasoning, if the server returns it. */
  readonly reasoning?: string;
  /** The calls of tools, if there are any; their ids are the server's. */
  readonly toolCalls?: readonly ToolCall[];
  /** Data that the server wants back with its tool calls, such as signatures of thoughts. drmas does not read them. */
  readonly providerData?: Readonly<Record<string, unknown>>;
  readonly finishReason: FinishReason;
  /** Tokens as the server counts them, with its tokenizer; absent if it does not return them. */
  readonly promptTokens?: number;
  readonly responseTokens?: number;
}

export interface TextBackend {
  /**
   * @throws EndpointError when no request can succeed; other errors are of this one request. Rejects with the signal's
   *   reason.
   */
  complete(request: TextRequest, signal: AbortSignal): Promise<Utterance>;
}
