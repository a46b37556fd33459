import type { AgentModel } from '../../engine/backends.js';
import type { Generation } from '../../engine/contract.js';
import { callsIn, TextStream, type ThoughtOut, withoutThinking } from '../../engine/tokens.js';
import type { ModelAnswer, ModelRequest } from '../../gateway/dialects.js';
import { type ContentPiece, ContentStream, overlap, THINK, THOUGHT } from './content-stream.js';

/** The agent's prompt, and the required beginning of its answer. */
export interface AnswerStart {
  readonly prompt: readonly number[];
  /** The ids at the prompt's end that begin the answer if it must call a tool. */
  readonly opening: readonly number[];
}

/** Tokens of a prompt's end that are looked at for the beginning of thinking. */
const LAST_TOKENS = 16;

/** Makes an answer of the tokens that are sampled for a request. */
export class AnswerWriter {
  readonly #agentModel: AgentModel;
  readonly #request: ModelRequest;
  readonly #reading: AnswerStart;
  readonly #text: TextStream;
  readonly #content: ContentStream;
  readonly #thinking: boolean;
  readonly #sampled: number[] = [];
  /** The text so far, and the length of the part that was sent. */
  #written = '';
  #handed = 0;
  #stopped = false;

  constructor(agentModel: AgentModel, request: ModelRequest, reading: AnswerStart) {
    const { tokenizer } = agentModel.model;
    this.#agentModel = agentModel;
    this.#request = request;
    this.#reading = reading;
    this.#text = new TextStream(tokenizer);
    this.#thinking = tokenizer.decode(reading.prompt.slice(-LAST_TOKENS)).trimEnd().endsWith(THINK);
    this.#content = new ContentStream(this.#thinking, this.#mayCall ? agentModel.agent?.tools : undefined);
    this.#written = this.#text.push(reading.opening);
  }

  get #mayCall(): boolean {
    const { tools, toolChoice } = this.#request;
    return tools !== undefined && toolChoice !== 'none';
  }

  /** Whether a text was written at which the client wanted the answer to end. */
  get stopped(): boolean {
    return this.#stopped;
  }

  /** The part of the answer that the tokens add, as far as it is certain. */
  push(tokens: readonly number[]): ContentPiece[] {
    if (this.#stopped) return [];
    this.#sampled.push(...tokens);
    const stop = this.#request.sampling.stop?.filter((text) => text !== '') ?? [];
    const longest = Math.max(0, ...stop.map((text) => text.length));
    const from = Math.max(0, this.#written.length - longest);
    this.#written += this.#text.push(tokens);
    const ends = stop.map((text) => this.#written.indexOf(text, from)).filter((at) => at >= 0);
    this.#stopped = ends.length > 0;
    if (this.#stopped) this.#written = this.#written.slice(0, Math.min(...ends));
    const waiting = this.#stopped ? 0 : Math.max(0, ...stop.map((text) => overlap(this.#written, text)));
    return this.#hand(this.#written.length - waiting);
  }

  #hand(end: number): ContentPiece[] {
    const text = this.#written.slice(this.#handed, end);
    this.#handed = Math.max(this.#handed, end);
    return this.#content.push(text);
  }

  /** @param generation Undefined if a stop text has ended it */
  answer(id: string, generation: Generation | undefined): ModelAnswer {
    const { model, wantsTokenIds } = this.#request;
    const { prompt } = this.#reading;
    const text = this.#stopped ? this.#written : this.#text.text;
    const { rest, reasoning } = this.#split(text);
    const read = this.#callsIn(rest);
    const calls = read?.calls ?? [];
    const { given } = this.#content;
    // Text that was streamed stays: an end of thinking without a beginning is then a part of the answer.
    const content = read?.content ?? rest;
    const fits = content.startsWith(given);
    const response = generation?.tokens ?? this.#sampled;
    return {
      ...{ id, model, content: fits ? content : calls.length > 0 ? given : text },
      ...(reasoning === undefined || !fits ? {} : { reasoning }),
      toolCalls: calls.map((call, n) => ({ id: `call_${id}_${n}`, ...call })),
      finishReason: calls.length > 0 ? 'tool_calls' : (generation?.finishReason ?? 'stop'),
      usage: { promptTokens: prompt.length, responseTokens: response.length },
      ...(wantsTokenIds && generation !== undefined
        ? { tokens: { prompt, response, logprobs: generation.logprobs } }
        : {}),
    };
  }

  #split(text: string): ThoughtOut {
    if (this.#thinking && !text.includes(THOUGHT)) return { reasoning: text.trim(), rest: '' };
    return withoutThinking(text);
  }

  #callsIn(text: string): ReturnType<typeof callsIn> {
    const { tools } = this.#request;
    const format = this.#agentModel.agent?.tools;
    if (!this.#mayCall || tools === undefined || format === undefined) return undefined;
    return callsIn(text, format, tools);
  }
}
