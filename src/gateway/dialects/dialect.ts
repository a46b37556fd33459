/** The common form of all wire dialects: one model call, and its answer. */
import type { DialectError } from '@drmas/engine/errors';
import type { JsonSchema, Message, Tool, ToolCall, ToolChoice } from '@drmas/engine/nouns';

/** The sampling that a request wishes for. A server of a run in training has its recipe's and ignores it. */
export interface WishedSampling {
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  readonly seed?: number;
  readonly stop?: readonly string[];
}

export interface ModelRequest {
  /** The model's name as the client wrote it. */
  readonly model: string;
  readonly messages: readonly Message[];
  readonly tools?: readonly Tool[];
  readonly toolChoice?: ToolChoice;
  readonly maxTokens?: number;
  /** The number of answers, if the client wants several: `n` of chat completions. */
  readonly answers?: number;
  readonly stream: boolean;
  /** Whether a stream of chat completions ends with a chunk of counts; the other dialects always send counts. */
  readonly streamUsage: boolean;
  readonly responseSchema?: JsonSchema;
  readonly wantsTokenIds: boolean;
  readonly sampling: WishedSampling;
  /** Fields of the request as its answer repeats them. */
  readonly repeated?: Readonly<Record<string, unknown>>;
  /** The request's fields that only express a wish: the fields of `sampling`, and others that drmas ignores. */
  readonly ignored: readonly string[];
  /** The client finds out what the endpoint can return: in an episode, the request is no turn. */
  readonly probe?: true;
}

export interface AnswerUsage {
  readonly promptTokens: number;
  readonly responseTokens: number;
  /** The tokens of the response up to the end of its thinking. Absent without thinking, or if they are not known. */
  readonly reasoningTokens?: number;
}

export interface ModelAnswer {
  /** Unique per answer. */
  readonly id: string;
  readonly model: string;
  /** The text without calls and without thinking. */
  readonly content: string;
  readonly reasoning?: string;
  readonly toolCalls: readonly ToolCall[];
  readonly finishReason: 'stop' | 'length' | 'tool_calls';
  readonly stopText?: string;
  readonly usage: AnswerUsage;
  /** The ids that were fed [P] and sampled [R], with the log-probs of the sampled ones [R]. */
  readonly tokens?: {
    readonly prompt: readonly number[];
    readonly response: readonly number[];
    readonly logprobs: readonly number[];
  };
}

/**
 * A piece of an answer while it is generated. The last piece is the whole answer. The others may be missing, all or
 * from some point on; their content is then sent at the end.
 */
export type ModelDelta =
  | { readonly type: 'begin'; readonly id: string; readonly promptTokens: number }
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  | { readonly type: 'answer'; readonly answer: ModelAnswer };

export type Said = Pick<ModelAnswer, 'id' | 'content' | 'toolCalls'>;

export type Recall = (id: string) => Said | undefined;

export interface StreamEvent {
  readonly event?: string;
  readonly data: string;
}

/** A wire dialect: pure translations between what clients send and expect, and the types above. */
export interface Dialect {
  /**
   * @param recall Finds the earlier answers that requests name by id; without it requests cannot name any
   * @throws DialectError naming the field that is wrong
   */
  read(body: unknown, recall?: Recall): ModelRequest;
  /** The body of a whole answer. Chat completions may have further answers, to the same prompt. */
  write(request: ModelRequest, answer: ModelAnswer, further?: readonly ModelAnswer[]): object;
  /** The events of a streamed answer: deltas as they arrive, or all at once if only the whole answer arrives. */
  stream(request: ModelRequest, deltas: AsyncIterable<ModelDelta>): AsyncIterable<StreamEvent>;
  error(error: DialectError): object;
  /** @param sent The number of events before this one */
  streamError(error: DialectError, sent: number): StreamEvent;
}
