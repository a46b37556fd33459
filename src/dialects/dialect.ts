/** What every wire dialect is translated to and from: one call of a model, and its answer. */
import type { DialectError } from '../core/errors.js';
import type { JsonSchema, Message, Tool, ToolCall, ToolChoice } from '../core/message.js';

/** The sampling that a request wishes for. A server of a run in training has its recipe's and ignores it. */
export interface WishedSampling {
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  readonly seed?: number;
  /** Texts at which the answer ends. */
  readonly stop?: readonly string[];
}

/** One call of a model, whichever dialect it came in. */
export interface ModelRequest {
  /** The model's name as the client wrote it. */
  readonly model: string;
  readonly messages: readonly Message[];
  readonly tools?: readonly Tool[];
  readonly toolChoice?: ToolChoice;
  readonly maxTokens?: number;
  readonly stream: boolean;
  /** Whether a stream of chat completions ends with a chunk of counts; the other dialects always have them. */
  readonly streamUsage: boolean;
  /** The JSON schema that the answer should fit. */
  readonly responseSchema?: JsonSchema;
  /** Whether the answer should carry token ids and log-probs. */
  readonly wantsTokenIds: boolean;
  readonly sampling: WishedSampling;
  /** The names of the request's fields that only wish: those of `sampling`, and others that nothing here heeds. */
  readonly ignored: readonly string[];
}

/** The answer to a call. */
export interface ModelAnswer {
  /** Unique per answer. */
  readonly id: string;
  readonly model: string;
  /** The text without calls and without thinking. */
  readonly content: string;
  readonly reasoning?: string;
  readonly toolCalls: readonly ToolCall[];
  readonly finishReason: 'stop' | 'length' | 'tool_calls';
  readonly usage: { readonly promptTokens: number; readonly responseTokens: number };
  /** The ids that were fed [P] and sampled [R], with the log-probs of the sampled ones [R]. */
  readonly tokens?: {
    readonly prompt: readonly number[];
    readonly response: readonly number[];
    readonly logprobs: readonly number[];
  };
}

/**
 * A piece of an answer while it is generated. The last one is the whole answer; the others may be left out, wholly or
 * from some point on, and what they did not say is then said at the end.
 */
export type ModelDelta =
  | { readonly type: 'begin'; readonly id: string; readonly promptTokens: number }
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  | { readonly type: 'answer'; readonly answer: ModelAnswer };

/** What a model said earlier in the conversation. */
export type Said = Pick<ModelAnswer, 'id' | 'content' | 'toolCalls'>;

/** Gives what was said under an answer's id; undefined where nothing of the kind is known. */
export type Recall = (id: string) => Said | undefined;

/** One event of a stream of server-sent events. */
export interface StreamEvent {
  readonly event?: string;
  readonly data: string;
}

/** A wire dialect: pure translations between what clients send and expect, and the types above. */
export interface Dialect {
  /**
   * Reads a request's parsed body.
   * @param recall What requests may name in place of repeating it; without it nothing
   * @throws DialectError naming the field that is wrong
   */
  read(body: unknown, recall?: Recall): ModelRequest;
  /** The body of a whole answer. */
  write(request: ModelRequest, answer: ModelAnswer): object;
  /** The events of a streamed answer: real deltas as they come, or all of it at once where only the answer comes. */
  stream(request: ModelRequest, deltas: AsyncIterable<ModelDelta>): AsyncIterable<StreamEvent>;
  /** The body of a refusal. */
  error(error: DialectError): object;
  /** The event by which a stream ends that has begun and cannot go on. */
  streamError(error: DialectError): StreamEvent;
}
