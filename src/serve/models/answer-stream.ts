/** A request of a client answered by an agent, piece by piece. */

import { randomBytes } from 'node:crypto';
import type { Generation, OnTokens, Sampling } from '@drmas/engine/contract';
import { checkedSampling } from '@drmas/engine/embedded';
import { type AgentModel, samplingOf } from '@drmas/engine/endpoints';
import { ArgumentError, DialectError, TokenizerError } from '@drmas/engine/errors';
import { onAbort } from '@drmas/engine/host';
import { randomKey } from '@drmas/engine/math';
import { TextStream, thoughtTokens } from '@drmas/engine/tokens';
import { callsIn, opensThinking, toolFormat, withoutThinking } from '@drmas/engine/tool-calls';
import type { ModelAnswer, ModelDelta, ModelRequest } from '../../gateway/dialects.js';
import { promptMessages } from '../../teams/rollout.js';
import { type ContentPiece, ContentStream, overlap } from './content-stream.js';

/** Characters of the longest tokens that vocabularies have: a prompt of more is refused before it is tokenised. */
const LONGEST_TOKEN = 128;

/**
 * The input ids of a request for the agent.
 * @throws DialectError for tools that the agent cannot call, and for text that tokenizer or template cannot represent
 */
export function readingOf(
  agentModel: AgentModel,
  { messages, tools, toolChoice = 'auto', responseSchema, model }: ModelRequest,
): AnswerStart {
  const format = agentModel.agent?.tools;
  if (tools !== undefined && format === undefined)
    throw new DialectError(400, 'no_tools', `the agent '${model}' was trained without tools and calls none`, 'tools');
  const { context, tokenizer } = agentModel.model;
  const characters = messages.reduce((sum, { content }) => sum + content.length, 0);
  if (characters > context * LONGEST_TOKEN) throw noRoom(`${characters} characters`, context);
  try {
    // As in training, where a program's own system prompt gives way to the agent's.
    const conversation = promptMessages(agentModel.agent?.system, messages, responseSchema, true);
    const prompt = tokenizer.chat(conversation, undefined, tools);
    const mustCall = tools !== undefined && format !== undefined && toolChoice !== 'auto' && toolChoice !== 'none';
    const name = typeof toolChoice === 'object' ? toolChoice.name : undefined;
    const opening = mustCall ? tokenizer.encode(toolFormat(format).opening(name)) : [];
    return { prompt: [...prompt, ...opening], opening };
  } catch (error) {
    if (error instanceof TokenizerError) throw new DialectError(400, 'unreadable', error.message);
    throw error;
  }
}

const noRoom = (size: string, context: number) =>
  new DialectError(
    400,
    'context_length_exceeded',
    `the prompt has ${size}, which leave no room in a context of ${context} tokens`,
  );

/** The sampling of an answer: the agent's with the client's wishes, within the context. @throws DialectError */
function samplingFor(agentModel: AgentModel, { sampling, maxTokens }: ModelRequest, { prompt }: AnswerStart): Sampling {
  const { context } = agentModel.model;
  const room = context - prompt.length;
  if (room < 1) throw noRoom(`${prompt.length} tokens`, context);
  const { temperature, topP, topK, seed = 0 } = sampling;
  const wished = Object.entries({ temperature, topP, topK, maxTokens }).filter(([, value]) => value !== undefined);
  try {
    const chosen = checkedSampling(samplingOf(agentModel, Object.fromEntries(wished)), seed);
    return { ...chosen, maxTokens: Math.min(chosen.maxTokens, room) };
  } catch (error) {
    if (!(error instanceof ArgumentError)) throw error;
    const asSent = error.message.replace(/^top[PK]\b/, (name) => (name === 'topP' ? 'top_p' : 'top_k'));
    throw new DialectError(400, 'invalid_value', asSent, /^(\w+): /.exec(asSent)?.[1]);
  }
}

/** The abort reason when a stop text of the client ends sampling. */
const STOPPED = new Error('a stop text was written');

/**
 * Answers a request: the text while it is sampled, then the whole answer with its calls. Without a seed every answer is
 * another.
 * @throws DialectError before the first piece when the request cannot be answered; the signal's reason
 */
export async function* answerStream(
  agentModel: AgentModel,
  request: ModelRequest,
  signal: AbortSignal,
): AsyncGenerator<ModelDelta, void> {
  const reading = readingOf(agentModel, request);
  const sampling = samplingFor(agentModel, request, reading);
  const { seed = randomBytes(6).readUIntBE(0, 6) } = request.sampling;
  const id = randomBytes(12).toString('hex');
  yield { type: 'begin', id, promptTokens: reading.prompt.length };
  const ended = new AbortController();
  const pieces = new PushQueue<ModelDelta>();
  const writer = new AnswerWriter(agentModel, request, reading);
  const { stopTokens } = agentModel.model.tokenizer;
  const sent = { ...sampling, prompt: reading.prompt, stopTokens, key: randomKey('answer', seed) };
  const onTokens: OnTokens = (tokens) => {
    for (const piece of writer.push(tokens)) pieces.push(piece);
    if (writer.stopped) ended.abort(STOPPED);
  };
  // Node keeps signals of AbortSignal.any in memory, hence one signal that fires for either reason.
  const leave = () => {
    ended.abort(signal.reason);
    pieces.fail(signal.reason); // a model may read a long prompt before it heeds the signal; nobody waits for that
  };
  if (signal.aborted) leave();
  const stopListening = onAbort(signal, leave);
  agentModel.model
    .generate(sent, ended.signal, onTokens)
    .catch((error: unknown) => {
      if (error !== STOPPED) throw error;
      return undefined;
    })
    .then((generation) => {
      pieces.push({ type: 'answer', answer: writer.answer(id, generation) });
      pieces.end();
    })
    .catch((error: unknown) => pieces.fail(error));
  try {
    yield* pieces;
  } finally {
    stopListening();
    ended.abort(STOPPED); // the reader of the pieces may have disconnected
  }
}

interface AnswerStart {
  readonly prompt: readonly number[];
  /** The ids at the prompt's end that begin the answer if it must call a tool. */
  readonly opening: readonly number[];
}

class AnswerWriter {
  readonly #agentModel: AgentModel;
  readonly #request: ModelRequest;
  readonly #reading: AnswerStart;
  readonly #text: TextStream;
  readonly #content: ContentStream;
  readonly #thinking: boolean;
  readonly #sampled: number[] = [];
  readonly #stops: readonly string[];
  readonly #required: number;
  /** The text that was sent, and the text behind it. Only the latter is read: the former may be long. */
  #handed = '';
  #rest: string;
  /** The text at which the client wanted the answer to end, once it is written. */
  #stopText: string | undefined;

  constructor(agentModel: AgentModel, request: ModelRequest, reading: AnswerStart) {
    const { tokenizer } = agentModel.model;
    this.#agentModel = agentModel;
    this.#request = request;
    this.#reading = reading;
    this.#text = new TextStream(tokenizer);
    this.#thinking = opensThinking(tokenizer, reading.prompt);
    this.#content = new ContentStream(this.#thinking, this.#mayCall ? agentModel.agent?.tools : undefined);
    this.#rest = this.#text.push(reading.opening);
    this.#required = this.#rest.length;
    this.#stops = request.sampling.stop?.filter((text) => text !== '') ?? [];
  }

  get #mayCall(): boolean {
    const { tools, toolChoice } = this.#request;
    return tools !== undefined && toolChoice !== 'none';
  }

  get stopped(): boolean {
    return this.#stopText !== undefined;
  }

  /** The part of the answer that the tokens add, as far as it is certain. Batches of tokens change nothing. */
  push(tokens: readonly number[]): ContentPiece[] {
    for (const token of tokens) {
      if (this.stopped) break;
      this.#sampled.push(token);
      this.#write(this.#text.push([token]));
    }
    const waiting = this.stopped ? 0 : Math.max(0, ...this.#stops.map((text) => overlap(this.#rest, text)));
    return this.#hand(this.#rest.length - waiting);
  }

  /**
   * Adds a text, and ends the answer before the first stop text in it. A required beginning stops nothing. What may
   * begin a stop text was not sent.
   */
  #write(piece: string): void {
    const longest = Math.max(0, ...this.#stops.map((text) => text.length));
    const from = Math.max(this.#required - this.#handed.length, this.#rest.length - longest);
    this.#rest += piece;
    const ends = this.#stops.map((text) => ({ text, at: this.#rest.indexOf(text, from) })).filter(({ at }) => at >= 0);
    const [end] = ends.sort((one, other) => one.at - other.at);
    this.#stopText = end?.text;
    if (end !== undefined) this.#rest = this.#rest.slice(0, end.at);
  }

  #hand(end: number): ContentPiece[] {
    const text = this.#rest.slice(0, end);
    this.#rest = this.#rest.slice(end);
    this.#handed += text;
    return this.#content.push(text);
  }

  /** @param generation Undefined if a stop text has ended it */
  answer(id: string, generation: Generation | undefined): ModelAnswer {
    const { model, wantsTokenIds } = this.#request;
    const { prompt } = this.#reading;
    if (!this.stopped) this.#write(this.#text.end()); // a character that is not whole was held back
    const text = this.stopped ? this.#handed + this.#rest : this.#text.text;
    const { rest, reasoning } = withoutThinking(text, this.#thinking);
    const read = this.#callsIn(rest);
    const calls = read?.calls ?? [];
    const { given } = this.#content;
    // Text that was streamed stays.
    const content = read?.content ?? rest;
    const fits = content.startsWith(given);
    const response = this.stopped ? this.#sampled : (generation?.tokens ?? this.#sampled);
    const thought = reasoning === undefined || !fits ? undefined : reasoning;
    return {
      id,
      model,
      content: fits ? content : calls.length > 0 ? given : text,
      ...(thought === undefined ? {} : { reasoning: thought }),
      toolCalls: calls.map((call, n) => ({ id: `call_${id}_${n}`, ...call })),
      finishReason: calls.length > 0 ? 'tool_calls' : this.stopped ? 'stop' : (generation?.finishReason ?? 'stop'),
      ...(this.#stopText === undefined ? {} : { stopText: this.#stopText }),
      usage: {
        promptTokens: prompt.length,
        responseTokens: response.length,
        ...(thought === undefined
          ? {}
          : { reasoningTokens: thoughtTokens(this.#agentModel.model.tokenizer, response) }),
      },
      ...(wantsTokenIds && generation !== undefined && !this.stopped
        ? { tokens: { prompt, response, logprobs: generation.logprobs } }
        : {}),
    };
  }

  /** @throws DialectError for a tool whose schema takes too long to check */
  #callsIn(text: string): ReturnType<typeof callsIn> {
    const { tools } = this.#request;
    const format = this.#agentModel.agent?.tools;
    if (!this.#mayCall || tools === undefined || format === undefined) return undefined;
    try {
      return callsIn(text, format, tools);
    } catch (error) {
      throw error instanceof ArgumentError ? new DialectError(400, 'costly_schema', `tools: ${error.message}`) : error;
    }
  }
}

/** Values that one side pushes while the other iterates over them. */
class PushQueue<Value> implements AsyncIterable<Value> {
  readonly #values: Value[] = [];
  #over: { readonly error?: unknown } | undefined;
  #wake: () => void = () => {};

  push(value: Value): void {
    this.#values.push(value);
    this.#wake();
  }

  /** No further value will come. */
  end(): void {
    this.#over ??= {};
    this.#wake();
  }

  /** Ends the values with an error, which the iterating side receives after the last value. */
  fail(error: unknown): void {
    this.#over ??= { error };
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Value, void> {
    for (;;) {
      yield* this.#values.splice(0);
      if (this.#values.length > 0) continue;
      if (this.#over !== undefined) {
        if ('error' in this.#over) throw this.#over.error;
        return;
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
