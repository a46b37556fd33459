/** A request of a client answered by an agent, piece by piece. */
import { randomBytes } from 'node:crypto';
import { onAbort } from '../../base/async.js';
import { ArgumentError, DialectError, TokenizerError } from '../../base/errors.js';
import { randomKey } from '../../base/math.js';
import { type AgentModel, checkedSampling, conversationWith, samplingOf } from '../../engine/backends.js';
import type { OnTokens, Sampling } from '../../engine/contract.js';
import { toolFormat } from '../../engine/tokens.js';
import type { ModelDelta, ModelRequest } from '../../gateway/dialects.js';
import { promptMessages } from '../../teams/rollout.js';
import { type AnswerStart, AnswerWriter } from './answer-writer.js';
import { PushQueue } from './push-queue.js';

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
    throw new DialectError(400, 'no_tools', `the agent '${model}' was trained without tools and calls none`);
  const { context, tokenizer } = agentModel.model;
  const characters = messages.reduce((sum, { content }) => sum + content.length, 0);
  if (characters > context * LONGEST_TOKEN) throw noRoom(`${characters} characters`, context);
  try {
    const conversation = promptMessages(undefined, conversationWith(agentModel, messages), responseSchema);
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
    throw error instanceof ArgumentError ? new DialectError(400, 'invalid_value', error.message) : error;
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
    stopListening();
    ended.abort(STOPPED); // the reader of the pieces may have disconnected
  }
}
