/** A request of a client answered by an agent, piece by piece. */
import { randomBytes } from 'node:crypto';
import { checkedSampling } from '../backends/embedded/generate-options.js';
import { conversationWith, samplingOf, type Voice } from '../backends/voice.js';
import type { OnTokens, Sampling } from '../contract/sampling.js';
import { ArgumentError, DialectError, TokenizerError } from '../core/errors.js';
import { randomKey } from '../core/random.js';
import type { ModelDelta, ModelRequest } from '../dialects/dialect.js';
import { toolFormat } from '../model/tool-formats/index.js';
import { promptMessages } from '../rollout/prompt-messages.js';
import { AnswerWriter, type Reading } from './answer-writer.js';
import { Pushed } from './pushed.js';

/** Characters of the longest tokens that vocabularies have: a prompt of more is refused before it is tokenised. */
const LONGEST_TOKEN = 128;

/**
 * The ids that a request makes the agent read.
 * @throws DialectError for tools that the agent cannot call, and for what its tokenizer or template cannot say
 */
export function readingOf(
  voice: Voice,
  { messages, tools, toolChoice = 'auto', responseSchema, model }: ModelRequest,
): Reading {
  const format = voice.agent?.tools;
  if (tools !== undefined && format === undefined)
    throw new DialectError(400, 'no_tools', `the agent '${model}' was trained without tools and calls none`);
  const { context, tokenizer } = voice.model;
  const characters = messages.reduce((sum, { content }) => sum + content.length, 0);
  if (characters > context * LONGEST_TOKEN) throw noRoom(`${characters} characters`, context);
  try {
    const conversation = promptMessages(undefined, conversationWith(voice, messages), responseSchema);
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
function samplingFor(voice: Voice, { sampling, maxTokens }: ModelRequest, { prompt }: Reading): Sampling {
  const { context } = voice.model;
  const room = context - prompt.length;
  if (room < 1) throw noRoom(`${prompt.length} tokens`, context);
  const { temperature, topP, topK, seed = 0 } = sampling;
  const wished = Object.entries({ temperature, topP, topK, maxTokens }).filter(([, value]) => value !== undefined);
  try {
    const chosen = checkedSampling(samplingOf(voice, Object.fromEntries(wished)), seed);
    return { ...chosen, maxTokens: Math.min(chosen.maxTokens, room) };
  } catch (error) {
    throw error instanceof ArgumentError ? new DialectError(400, 'invalid_value', error.message) : error;
  }
}

/** The reason by which sampling ends at a text at which the client wanted it to end. */
const STOPPED = new Error('a stop text was written');

/**
 * Answers a request: the text while it is sampled, then the whole answer with its calls. Without a seed every answer is
 * another.
 * @throws DialectError before the first piece when the request cannot be answered; the signal's reason
 */
export async function* answerStream(
  voice: Voice,
  request: ModelRequest,
  signal: AbortSignal,
): AsyncGenerator<ModelDelta, void> {
  const reading = readingOf(voice, request);
  const sampling = samplingFor(voice, request, reading);
  const { seed = randomBytes(6).readUIntBE(0, 6) } = request.sampling;
  const id = randomBytes(12).toString('hex');
  yield { type: 'begin', id, promptTokens: reading.prompt.length };
  const ended = new AbortController();
  const pieces = new Pushed<ModelDelta>();
  const writer = new AnswerWriter(voice, request, reading);
  const { stopTokens } = voice.model.tokenizer;
  const sent = { ...sampling, prompt: reading.prompt, stopTokens, key: randomKey('answer', seed) };
  const onTokens: OnTokens = (tokens) => {
    for (const piece of writer.push(tokens)) pieces.push(piece);
    if (writer.stopped) ended.abort(STOPPED);
  };
  voice.model
    .generate(sent, AbortSignal.any([signal, ended.signal]), onTokens)
    .catch((error: unknown) => {
      if (error !== STOPPED) throw error;
      return undefined;
    })
    .then(
      (generation) => {
        pieces.push({ type: 'answer', answer: writer.answer(id, generation) });
        pieces.end();
      },
      (error: unknown) => pieces.fail(error),
    );
  try {
    yield* pieces;
  } finally {
    ended.abort(STOPPED); // whoever read the pieces may have gone away
  }
}
