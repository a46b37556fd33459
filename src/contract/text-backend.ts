/**
 * A model behind text: text in, text out. It gives no token ids and no log-probs of ours, so nothing can be learnt from
 * it.
 */

import type { FinishReason } from '../core/episode.js';
import type { Message, Tool, ToolCall, ToolChoice } from '../core/message.js';
import type { Sampling } from './sampling.js';

export interface TextRequest extends Sampling {
  readonly messages: readonly Message[];
  /** The seed for servers that can repeat themselves: a function of the episode and the call, in [0, 2^31). */
  readonly seed: number;
  /** The tools that the model may call; absent where there are none. */
  readonly tools?: readonly Tool[];
  readonly toolChoice?: ToolChoice;
}

export interface Utterance {
  readonly text: string;
  /** What the model thought, where the server says so. */
  readonly reasoning?: string;
  /** The calls of tools, where there are any; their ids are the server's. */
  readonly toolCalls?: readonly ToolCall[];
  readonly finishReason: FinishReason;
  /** Tokens as the server counts them, with its tokenizer; absent where it does not say. */
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
